"""What happened in a chaos run, with the times in seconds after the beginning of the load."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """A fault that took place, or another note for the timeline."""

    at: float
    kind: str
    text: str
    seconds: float = 0.0


@dataclass
class EventLog:
    """The events of a run and its clock; several threads write."""

    began: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    events: list[Event] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def now(self) -> float:
        """Seconds after the beginning of the load."""
        return time.time() - self.began

    def add(self, kind: str, text: str, *, at: float | None = None) -> None:
        """Add an event that took place at `at`, by default now; it has lasted until now."""
        now = self.now
        with self._lock:
            self.events.append(Event(now if at is None else at, kind, text, 0.0 if at is None else now - at))

    def count(self, kind: str) -> int:
        """Count the events of a kind."""
        with self._lock:
            return sum(event.kind == kind for event in self.events)
