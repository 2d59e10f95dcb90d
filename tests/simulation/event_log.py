"""What happened, line by line, to be read by people when a schedule fails."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

MAX_LINES = 20_000


@dataclass
class EventLog:
    """Lines of the form `12.345  infer/2    sqs SendMessageBatch post: …`."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    _digest: Any = field(default_factory=sha256)

    def note(self, seconds: float, who: str, what: str) -> None:
        """Add a line."""
        line = f"{seconds:10.3f}  {who:<18} {what}"
        self.lines.append(line)
        self._digest.update(line.encode("utf-8", "backslashreplace"))

    def about(self, text: str) -> Iterator[str]:
        """The lines that contain a text."""
        return (line for line in self.lines if text in line)

    @property
    def digest(self) -> str:
        """The same for the same history."""
        return str(self._digest.hexdigest())
