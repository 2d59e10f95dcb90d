"""The client of the worker of handlers: it sends batches, and starts processes with new code at a change.

A lane is a connection to one process, which has one call at a time.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_START_SECONDS = 30.0


class WorkerDiedError(Exception):
    """The process of a call has ended, such as by `os._exit`, or was killed at its time limit."""


@dataclass(eq=False)
class Lane:
    """One connection.

    Attributes:
        generation: The set of code that its process has.
    """

    generation: int
    _connection: socket.socket
    _tell: Callable[[str, str], None]
    _channel: Any
    _pid: int = 0
    _numbers: count[int] = field(default_factory=count)

    @classmethod
    def open(cls, path: Path, generation: int, tell: Callable[[str, str], None]) -> Lane:
        """Start a process.

        Raises:
            OSError: The worker does not take connections.
            WorkerDiedError: The process ended at once.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_START_SECONDS)
            connection.connect(str(path))
            lane = cls(generation, connection, tell, connection.makefile("rwb"))
            lane._pid = lane._receive()["pid"]
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return lane

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request, pass on what its process tells, and return the answer to this request.

        Args:
            request: The request.
            seconds: The time limit; the process is killed then, with the processes that it has started.

        Raises:
            WorkerDiedError: The process has ended, or was killed.
        """
        number, expired = next(self._numbers), threading.Event()

        def expire() -> None:
            expired.set()
            self.kill()

        alarm = threading.Timer(seconds, expire)
        alarm.daemon = True
        alarm.start()
        try:
            self._channel.write(json.dumps({**request, "number": number}).encode() + b"\n")
            self._channel.flush()
            while "level" in (message := self._receive()):
                self._tell(message["level"], message["text"])
        except OSError as error:
            raise WorkerDiedError from error
        finally:
            alarm.cancel()
        if expired.is_set() or message["number"] != number:
            self.kill()
            raise WorkerDiedError
        return message

    def _receive(self) -> dict[str, Any]:
        line = self._channel.readline()
        if not line:
            raise WorkerDiedError
        message: dict[str, Any] = json.loads(line)
        return message

    def kill(self) -> None:
        """Kill the process and those that it has started, and wake who waits for its answer."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the process, after what it does now."""
        with suppress(OSError):
            self._channel.close()
        self._connection.close()


LOAD_SECONDS = 30.0
"""The time limit of imports; Lambda gives them ten seconds, and then starts again."""
_MISSING_PACKAGE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'$", re.MULTILINE)
_LANES = 4
"""The calls of handlers at the same time; further ones wait."""


class NotLoadedError(Exception):
    """The handler cannot be loaded, so its messages wait."""


class WorkerFailedError(Exception):
    """A function raised instead of answering; the message is the traceback."""


@dataclass(eq=False)
class Handlers:
    """The handlers of one folder.

    Attributes:
        socket: the socket of their worker; another one counts from the next `load` on.
        tell: takes the level and the text of what the author should know.
    """

    socket: Path
    tell: Callable[[str, str], None]
    _generation: int = 0
    _idle: list[Lane] = field(default_factory=list)
    _free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_LANES))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loaded: threading.Condition = field(default_factory=threading.Condition)
    _problems: dict[str, str] = field(default_factory=dict)
    _is_loading: bool = True

    def load(self, variables: Mapping[str, Mapping[str, str]], seconds: float = LOAD_SECONDS) -> dict[str, str]:
        """Load the handlers as they are now. Calls that run go on with the code that they started with.

        Args:
            variables: The environment variables of each actor.
            seconds: The time limit of the imports.

        Returns:
            Why actors cannot be loaded; their messages wait until they can.

        Raises:
            WorkerDiedError, OSError: The worker is gone. All messages wait for a `load` with another one.
        """
        with self._loaded:
            self._is_loading = True
        lane = Lane.open(self.socket, self._generation + 1, self.tell)
        try:
            problems: dict[str, str] = lane.ask({"load": variables}, seconds)["problems"]
        except WorkerDiedError:
            problems = dict.fromkeys(
                variables, f"importing the handlers ended the process, or took longer than {seconds:g} s"
            )
            outdated = [lane]
        else:
            outdated = []
        with self._lock:
            self._generation += 1
            outdated += self._idle
            self._idle = [] if lane in outdated else [lane]
        for each in outdated:
            each.close()
        with self._loaded:
            self._problems, self._is_loading = problems, False
            self._loaded.notify_all()
        return problems

    @property
    def has_problems(self) -> bool:
        """Whether some actor waits for a change of its code."""
        return bool(self._problems)

    def wait_until_loaded(self, actor: str) -> None:
        """Wait until the handler of an actor can be called."""
        with self._loaded:
            self._loaded.wait_for(lambda: not self._is_loading and actor not in self._problems)

    def process(self, actor: str, variables: Mapping[str, str], event: Mapping[str, Any], seconds: float) -> set[str]:
        """Let a handler's function process a batch; returns the messages that stay on the queue.

        Args:
            actor: The actor.
            variables: Its environment variables.
            event: The event of the batch.
            seconds: The timeout of the function.

        Raises:
            NotLoadedError: The handler cannot be loaded.
            WorkerDiedError: The process of the batch has ended.
            WorkerFailedError: The function raised.
        """
        if actor in self._problems:
            raise NotLoadedError
        with self._free:
            lane = self._acquire()
            try:
                answer = lane.ask({"actor": actor, "variables": variables, "event": event}, seconds)
            except BaseException:
                lane.close()
                raise
            self._release(lane)
        if "error" in answer:
            raise WorkerFailedError(answer["error"])
        if answer["failed"] is None:
            self._wait_for_change(actor, answer["problem"])
            raise NotLoadedError
        return set(answer["failed"])

    def _acquire(self) -> Lane:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            generation = self._generation
        try:
            return Lane.open(self.socket, generation, self.tell)
        except OSError as error:
            with self._loaded:
                self._is_loading = True  # until a new worker has loaded the handlers
            raise NotLoadedError from error

    def _wait_for_change(self, actor: str, problem: str) -> None:
        """Let the messages of an actor wait: a further process has read files that were changed since the last load."""
        with self._loaded:
            is_news = actor not in self._problems
            self._problems = {**self._problems, actor: problem}
        if is_news:
            self.tell("error", f"{actor} cannot be loaded in a further process, and its messages wait:\n{problem}")

    def _release(self, lane: Lane) -> None:
        with self._lock:
            if lane.generation == self._generation:
                self._idle.append(lane)
                return
        lane.close()

    def close(self) -> None:
        """End the idle processes, and the others after their calls."""
        with self._lock:
            self._generation += 1
            lanes, self._idle = self._idle, []
        for lane in lanes:
            lane.close()


def described(problems: Mapping[str, str]) -> Iterable[str]:
    """Describe why actors cannot be loaded; a problem that several share appears once."""
    by_text: dict[str, list[str]] = {}
    for actor, text in problems.items():
        by_text.setdefault(text.rstrip(), []).append(actor)
    return [_problem(actors, text) for text, actors in by_text.items()]


def _problem(actors: Sequence[str], text: str) -> str:
    whose = "its" if len(actors) == 1 else "their"
    missing = _MISSING_PACKAGE.search(text)
    hint = ""
    if missing is not None:
        hint = f"\nHandlers find the packages that the requirements.txt of their folder names; {missing[1]!r} is none of them."
    return f"{', '.join(actors)} cannot be loaded, and {whose} messages wait:\n{text}{hint}"
