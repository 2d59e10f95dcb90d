"""A connection to the worker of handlers: one process, which has one call at a time."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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
