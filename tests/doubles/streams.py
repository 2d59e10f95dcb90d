"""A clock for those who look on, which moves when they wait, and what handlers have said, in memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from asya.messaging.lambdas.environment import RealEnvironment
from asya.protocol.events import PartialEvent
from asya.tasks.partials import PartialBatch, PartialKey, partial_batches
from tests.doubles.tasks import at


@dataclass
class Clock(RealEnvironment):
    """Time that passes only while somebody waits.

    Attributes:
        events: what happens in the meantime, by when: in seconds from the start.
    """

    seconds: float = 0.0
    pauses: int = 0
    events: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def now(self) -> datetime:
        return at(0) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.pauses += 1
        self.seconds += seconds
        due = [happen for when, happen in self.events if when <= self.seconds]
        self.events = [each for each in self.events if each[0] > self.seconds]
        for happen in due:
            happen()


@dataclass
class MemoryPartials:
    """Handlers' messages; `reads` counts the parts that were read."""

    parts: dict[PartialKey, PartialBatch] = field(default_factory=dict)
    reads: int = 0

    def keep(self, events: Iterable[PartialEvent]) -> None:
        for part in partial_batches(events):
            self.parts[part.key] = part

    def read(self, task_id: str, now: datetime, after: PartialKey | None = None) -> Iterator[PartialBatch]:
        for place, part in sorted(self.parts.items()):
            if part.id == task_id and (after is None or place > after):
                self.reads += 1
                yield part
