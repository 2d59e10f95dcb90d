"""The log of a schedule."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

MAX_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Noted:
    """One line of the log: its time, its process and its text."""

    seconds: float
    source: str
    text: str

    def __str__(self) -> str:
        """The line as text."""
        return f"{self.seconds:10.3f}  {self.source:<18} {self.text}"


@dataclass
class EventLog:
    """The latest lines, in the form `12.345  infer/2    sqs SendMessageBatch post: …`."""

    noted: deque[Noted] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    _count: int = 0
    _digest: Any = field(default_factory=sha256)

    def note(self, seconds: float, source: str, text: str) -> None:
        """Add a line."""
        line = Noted(seconds, source, text)
        self.noted.append(line)
        self._count += 1
        self._digest.update(str(line).encode("utf-8", "backslashreplace"))

    @property
    def lines(self) -> list[str]:
        """The lines as texts."""
        return list(map(str, self.noted))

    @property
    def numbered(self) -> Iterator[tuple[int, Noted]]:
        """The lines with the number of each one since the start."""
        return enumerate(self.noted, self._count - len(self.noted))

    def about(self, text: str) -> Iterator[str]:
        """Return the lines that contain a text."""
        return (line for line in self.lines if text in line)

    @property
    def digest(self) -> str:
        """A hash of all lines; equal histories have equal digests."""
        return str(self._digest.hexdigest())
