"""What handlers print, for the log of their actor. The worker of handlers runs this file by its path."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

LEVEL = "printed"
"""The level of a printed line; the terminal has it already."""


class PrintedLines:
    """A standard stream of a process that also tells each whole line of the actor at work.

    A process that a handler forks prints on, and tells nothing: it has no connection.
    """

    actor = ""
    """Whose call is at work; empty between calls. A process has one call at a time."""

    def __init__(self, stream: TextIO, tell: Callable[[str, str], None]) -> None:
        self._stream = stream
        self._tell: Callable[[str, str], None] | None = tell
        self._begun = ""
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._stop)

    @classmethod
    def replace_streams(cls, tell: Callable[[str, str], None]) -> None:
        """Tell from now on what this process prints to its standard output and error."""
        sys.stdout = cls(sys.stdout, tell)
        sys.stderr = cls(sys.stderr, tell)

    def write(self, text: str) -> int:
        """Write a text, and tell the lines that it completes."""
        count = self._stream.write(text)
        if self._tell is not None:
            with self._lock:
                *lines, self._begun = (self._begun + text).split("\n")
            for line in lines:
                if self.actor and line.strip():
                    self._tell(LEVEL, f"{self.actor}: {line}")
        return count

    def writelines(self, lines: Any) -> None:
        """Write each of these texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Everything else is that of the stream itself."""
        return getattr(self._stream, name)

    def _stop(self) -> None:
        self._tell = None
