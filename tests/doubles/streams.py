"""A clock that advances while a stream sleeps, and partials in memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from asya.function.lambdas.environment import RealEnvironment
from asya.protocol.events import PartialEvent
from asya.tasks.stream_events import PartialBatch, PartialKey, partial_batches
from tests.doubles.tasks import at


@dataclass
class FakeClock(RealEnvironment):
    """A clock that advances only during `sleep`.

    Attributes:
        scheduled: Calls to make, each with its time in seconds from the start.
    """

    seconds: float = 0.0
    sleeps: int = 0
    scheduled: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def now(self) -> datetime:
        return at(0) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.seconds += max(seconds, 1e-6)  # a remainder below the precision of a float would never pass
        due = [call for time, call in self.scheduled if time <= self.seconds]
        self.scheduled = [each for each in self.scheduled if each[0] > self.seconds]
        for call in due:
            call()


@dataclass
class MemoryPartials:
    """Partials in memory; `reads` counts the batches that were read."""

    batches: dict[tuple[PartialKey, int], PartialBatch] = field(default_factory=dict)
    reads: int = 0

    def save(self, events: Iterable[PartialEvent], now: datetime | None = None) -> None:
        """Store partials; without a time, as if long ago."""
        for batch in partial_batches(events):
            stored_at = int(now.timestamp()) if now else 0
            self.batches[batch.key, batch.messages[-1].sequence] = replace(batch, stored_at=stored_at)

    def read(self, task_id: str, now: datetime, after: PartialKey | None = None) -> Iterator[PartialBatch]:
        for (key, _), batch in sorted(self.batches.items(), key=lambda stored: stored[0]):
            if batch.id == task_id and (after is None or key > after):
                self.reads += 1
                yield batch
