"""Misbehaviour on demand: what the real service does on a bad day, switched on by a test.

Everything random comes from one seeded generator, so a test that failed can be run again.
"""

from __future__ import annotations

import random
import threading
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Faults:
    """Which faults are on. Probabilities are 0 to 1; None leaves a limit as the settings have it."""

    seed: int = 0
    starts_per_second: float | None = None
    start_burst: int | None = None
    max_concurrent_runs: int | None = None
    max_vcpu: int | None = None
    throttle: float = 0.0
    """Of calls: refused as one too many, whatever the rates say."""
    no_room: float = 0.0
    """Of runs: given up for want of workers when their set_state comes, as where `maximumCapacity` is in use."""
    lose_events: float = 0.0
    repeat_events: float = 0.0
    delay_events: float = 0.0
    delay_seconds: float = 5.0
    """The longest delay of a delayed event."""
    lose_responses: float = 0.0
    """Of calls that change something: the work is done, the connection closes without an answer."""
    repeat_calls: float = 0.0
    """Of calls that change something: they arrive twice; the caller gets the second answer."""
    delay_responses: float = 0.0
    """Of all calls: the answer comes late."""
    response_seconds: float = 2.0
    """The longest delay of a delayed answer."""
    kill_runs: float = 0.0
    """Of runs: the driver is killed, some time within `kill_within_seconds` of its start."""
    kill_within_seconds: float = 5.0

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Faults:
        """Faults from JSON; raises ValueError for a key that is no fault, or a value that is no number."""
        known = {field.name for field in fields(cls)}
        for key, value in values.items():
            if key not in known:
                raise ValueError(f"{key} is no fault; there are {', '.join(sorted(known))}")
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"{key} must be a number, not {value!r}")
        return replace(cls(), **values)

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class EventFate:
    """What becomes of one event: the delays, in seconds, of the copies that are sent."""

    delays: tuple[float, ...]


class Misfortune:
    """The faults that are on now, and the dice they are thrown with. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults = Faults()
        self._dice = random.Random(0)

    @property
    def faults(self) -> Faults:
        """The current faults."""
        with self._lock:
            return self._faults

    def switch(self, faults: Faults) -> None:
        """Turn other faults on, and start the dice from their seed."""
        with self._lock:
            self._faults = faults
            self._dice = random.Random(faults.seed)

    def event_fate(self) -> EventFate:
        """How often, and how late, the next event is sent."""
        with self._lock:
            faults, dice = self._faults, self._dice
            if dice.random() < faults.lose_events:
                return EventFate(())
            copies = 2 if dice.random() < faults.repeat_events else 1
            delays = (
                dice.uniform(0, faults.delay_seconds) if dice.random() < faults.delay_events else 0.0
                for _ in range(copies)
            )
            return EventFate(tuple(delays))

    def throttles(self) -> bool:
        """Whether the call at hand is refused as one too many."""
        return self._happens("throttle")

    def has_no_room(self) -> bool:
        """Whether the run whose set_state has come is given up for want of workers."""
        return self._happens("no_room")

    def repeats_call(self) -> bool:
        """Whether the call at hand arrives twice."""
        return self._happens("repeat_calls")

    def loses_response(self) -> bool:
        """Whether the answer of the call at hand gets lost."""
        return self._happens("lose_responses")

    def response_delay(self) -> float:
        """By how many seconds the answer of the call at hand is late."""
        with self._lock:
            late = self._dice.random() < self._faults.delay_responses
            return self._dice.uniform(0, self._faults.response_seconds) if late else 0.0

    def _happens(self, fault: str) -> bool:
        with self._lock:
            return self._dice.random() < float(getattr(self._faults, fault))

    def kill_after(self) -> float | None:
        """After how many seconds the run that starts now is killed; None lets it live."""
        with self._lock:
            if self._dice.random() >= self._faults.kill_runs:
                return None
            return self._dice.uniform(0, self._faults.kill_within_seconds)
