"""What handlers print, for the terminal and the log of their actor. The worker of handlers runs this file by its path."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO

LEVEL = "printed"
"""The level of a printed line."""
LONGEST = 64 * 1024
"""Characters of a line; the rest follows as another."""


class PrintedLines:
    """A standard stream of a process that tells each whole line of the actor at work.

    What is printed between calls goes to the stream, and so does all of a process that a handler forks: it has no connection.
    """

    actor: ClassVar[str] = ""
    """Whose call is at work; empty between calls. A process has one call at a time."""
    _streams: ClassVar[list[PrintedLines]] = []

    def __init__(self, stream: TextIO, tell: Callable[[str, str], None]) -> None:
        self._stream = stream
        self._tell: Callable[[str, str], None] | None = tell
        self._begun = ""
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._stop)

    @classmethod
    def replace_streams(cls, tell: Callable[[str, str], None]) -> None:
        """Tell from now on what calls print to the standard output and error of this process."""
        cls._streams = [cls(sys.stdout, tell), cls(sys.stderr, tell)]
        sys.stdout, sys.stderr = cls._streams

    @classmethod
    @contextmanager
    def of(cls, actor: str) -> Iterator[None]:
        """Let what is printed in the block be of an actor; its last line needs no end."""
        cls.actor = actor
        try:
            yield
        finally:
            for stream in cls._streams:
                stream.end_line()
            cls.actor = ""

    def write(self, text: str) -> int:
        """Tell the lines that a text completes, or write it between calls.

        Raises:
            UnicodeEncodeError: the stream cannot write the text either.
        """
        if self._tell is None or not self.actor:
            return self._stream.write(text)
        text.encode(self._stream.encoding or "utf-8", self._stream.errors or "strict")
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            while len(self._begun) > LONGEST:
                lines.append(self._begun[:LONGEST])
                self._begun = self._begun[LONGEST:]
        for line in lines:
            self._tell_line(line)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of these texts."""
        for line in lines:
            self.write(line)

    def end_line(self) -> None:
        """Tell the line that has begun."""
        with self._lock:
            line, self._begun = self._begun, ""
        self._tell_line(line)

    def __getattr__(self, name: str) -> Any:
        """Everything else is that of the stream itself."""
        return getattr(self._stream, name)

    def _tell_line(self, line: str) -> None:
        if self._tell is not None and line.strip():
            self._tell(LEVEL, f"{self.actor}: {line}")

    def _stop(self) -> None:
        self._tell, self._lock = None, threading.Lock()
