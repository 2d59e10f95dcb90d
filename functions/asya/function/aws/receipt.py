"""Receipts: the results of queued messages and reports."""

import threading
from typing import Protocol

import msgspec
from msgspec import field

from asya.function.nack import ServiceError


class Receipt(msgspec.Struct):
    """The result of a queued message or report; it is resolved when the receiver has answered.

    Attributes:
        kind: the kind of the message, for the metric `Sent`.
        error: the error of the receiver; None if it accepted the message.
    """

    kind: str
    error: Exception | None = None
    resolved: threading.Event = field(default_factory=threading.Event)

    @property
    def problem(self) -> Exception | None:
        """The error, or an error for an unresolved receipt; None if the receiver accepted the message."""
        return self.error if self.resolved.is_set() else ServiceError(f"the outcome of a {self.kind!r} is unknown")

    def resolve(self, error: Exception | None = None) -> None:
        """Set the result; only the first call counts."""
        if not self.resolved.is_set():
            self.error = error
            self.resolved.set()


class Outlet(Protocol):
    """A sender that queues messages or reports and sends them in batches."""

    def flush(self) -> None:
        """Send everything in the queue; on return, all receipts so far are resolved."""
