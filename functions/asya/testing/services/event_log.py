"""The log of a schedule."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

MAX_LINES = 20_000


@dataclass
class EventLog:
    """The latest lines, in the form `12.345  infer/2    sqs SendMessageBatch post: …`."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    _digest: Any = field(default_factory=sha256)

    def note(self, seconds: float, source: str, text: str) -> None:
        """Add a line."""
        line = f"{seconds:10.3f}  {source:<18} {text}"
        self.lines.append(line)
        self._digest.update(line.encode("utf-8", "backslashreplace"))

    def about(self, text: str) -> Iterator[str]:
        """Return the lines that contain a text."""
        return (line for line in self.lines if text in line)

    @property
    def digest(self) -> str:
        """A hash of all lines; equal histories have equal digests."""
        return str(self._digest.hexdigest())
