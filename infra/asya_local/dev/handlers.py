"""The client of the worker of handlers: it sends batches, and starts processes with new code at a change."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

_LANES = 4
"""The calls of handlers at the same time; further ones wait."""


class WorkerDiedError(Exception):
    """The process of a batch has ended, such as by `os._exit`, or was killed at its time limit."""


class NotLoadedError(Exception):
    """The handler cannot be loaded, so its messages wait."""


class WorkerFailedError(Exception):
    """A function raised instead of answering; the message is the traceback."""


@dataclass(eq=False)
class _Lane:
    """A connection to the worker: one process, with the code of its start."""

    generation: int
    connection: socket.socket
    tell: Callable[[str, str], None]
    _channel: Any = None
    _pid: int = 0

    @classmethod
    def open(cls, path: Path, generation: int, tell: Callable[[str, str], None]) -> _Lane:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
            lane = cls(generation, connection, tell, connection.makefile("rwb"))
            lane._pid = lane._receive()["pid"]
        except BaseException:
            connection.close()
            raise
        return lane

    def ask(self, request: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        """Send a request, pass on what its process tells, and return the answer.

        Args:
            request: The request.
            seconds: The time limit; the process is killed then.

        Raises:
            WorkerDiedError: The process has ended.
        """
        alarm = threading.Timer(seconds, self.kill) if seconds is not None else None
        if alarm is not None:
            alarm.daemon = True
            alarm.start()
        try:
            self._channel.write(json.dumps(request).encode() + b"\n")
            self._channel.flush()
            while "level" in (message := self._receive()):
                self.tell(message["level"], message["text"])
        except OSError as error:
            raise WorkerDiedError from error
        finally:
            if alarm is not None:
                alarm.cancel()
        return message

    def _receive(self) -> dict[str, Any]:
        line = self._channel.readline()
        if not line:
            raise WorkerDiedError
        message: dict[str, Any] = json.loads(line)
        return message

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process, after what it does now."""
        with suppress(OSError):
            self._channel.close()
        self.connection.close()


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
    _idle: list[_Lane] = field(default_factory=list)
    _free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_LANES))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loaded: threading.Condition = field(default_factory=threading.Condition)
    _problems: dict[str, str] = field(default_factory=dict)
    _is_loading: bool = True

    def load(self, variables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Load the handlers as they are now. Calls that run go on with the code that they started with.

        Args:
            variables: The environment variables of each actor.

        Returns:
            Why actors cannot be loaded; their messages wait until they can.
        """
        with self._loaded:
            self._is_loading = True
        lane = _Lane.open(self.socket, self._generation + 1, self.tell)
        try:
            problems: dict[str, str] = lane.ask({"load": variables}, None)["problems"]
        except WorkerDiedError:
            problems = dict.fromkeys(variables, "importing the handlers ended the process")
            lane.close()
            lane = _Lane.open(self.socket, self._generation + 1, self.tell)
        with self._lock:
            self._generation += 1
            outdated, self._idle = self._idle, [lane]
        for each in outdated:
            each.close()
        with self._loaded:
            self._problems, self._is_loading = problems, False
            self._loaded.notify_all()
        return problems

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
            raise NotLoadedError
        return set(answer["failed"])

    def _acquire(self) -> _Lane:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            generation = self._generation
        return _Lane.open(self.socket, generation, self.tell)

    def _release(self, lane: _Lane) -> None:
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
    return [
        f"{', '.join(actors)} cannot be loaded, and their messages wait:\n{text}" for text, actors in by_text.items()
    ]
