"""What becomes of something handed over to be sent or reported."""

import threading
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Receipt:
    """Settled once it is known whether the thing was accepted by where it goes.

    Attributes:
        kind: what was handed over, for the metric `Sent`.
        error: why it was not accepted, if it was not.
    """

    kind: str
    error: Exception | None = None
    resolved: threading.Event = field(default_factory=threading.Event)

    @property
    def problem(self) -> Exception | None:
        """Why the thing may not be taken for accepted; None if it was."""
        return self.error if self.resolved.is_set() else RuntimeError(f"it is not known what became of a {self.kind}")

    def resolve(self, error: Exception | None = None) -> None:
        """Note how it went; only the first word counts."""
        if not self.resolved.is_set():
            self.error = error
            self.resolved.set()


class Outlet(Protocol):
    """Somewhere that things are handed over to and leave in batches."""

    def flush(self) -> None:
        """Send everything that waits; when it returns, every ticket handed out so far is resolved."""
