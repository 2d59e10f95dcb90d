"""A task that is made of reports, and short forms of the events that follow a cursor."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Raw

from asya.gateway.streams.new_events import StreamEvent, new_events
from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.hops import HopRecord, fold, hop_records
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.protocol.times import format_time
from asya.tasks.stream_events import StreamPartial, StreamStatus
from asya.tasks.view import TaskView, task_view
from tests.doubles.streams import MemoryPartials
from tests.doubles.tasks import at

NOW = at(1000)
CREATED = TaskRecord(id="t", status="pending", created_at=format_time(at(0)), updated_at=format_time(at(0)))


def partial(position: int, sequence: int, *, attempt: int = 1, receive: int = 1, data: bytes = b"{}") -> PartialEvent:
    return PartialEvent(
        id="t", at=format_time(at(0)), data=Raw(data), actor="a", position=position, attempt=attempt, receive=receive,
        sequence=sequence,
    )  # fmt: skip


@dataclass
class World:
    """A task's record, its hops and its partials, made of reports."""

    record: TaskRecord = CREATED
    hops: dict[Any, HopRecord] = field(default_factory=dict)
    partials: MemoryPartials = field(default_factory=MemoryPartials)

    def report(self, *events: TaskEvent) -> None:
        for each in events:
            self.record = merge(self.record, each)
        for part in hop_records(events):
            self.hops[part.key, part.stage] = part

    def publish(self, *events: PartialEvent, now: datetime | None = None) -> None:
        """Stores partials; without a time, as if long ago."""
        self.partials.save(events, now)

    @property
    def task(self) -> TaskView:
        return task_view(self.record, fold(self.hops.values(), self.record.generation), NOW)

    def new_events(self, cursor: StreamCursor | None, limit: int = 500, now: datetime = NOW) -> tuple[StreamEvent, ...]:
        partials = self.partials.read("t", now)
        return new_events(cursor, self.task, list(self.hops.values()), partials, limit, now=now)


def labels(items: Sequence[StreamEvent]) -> list[str]:
    """Returns short labels: `received 0`, `partial 0.3`, `paused`, `final succeeded`."""
    return [_label(item) for item in items]


def _label(item: StreamEvent) -> str:
    data = item.data
    if isinstance(data, StreamPartial):
        return f"partial {data.position}.{data.sequence}"
    if isinstance(data, StreamStatus):
        prefix = "snapshot " if data.is_snapshot else ""
        attempt = f".{data.attempt}" if data.attempt != 1 else ""
        return f"{data.step} {data.position}{attempt}" if data.step else prefix + data.status
    return f"final {data.status}"


def percents(items: Sequence[StreamEvent]) -> list[int]:
    return [item.data.progress_percent for item in items if not isinstance(item.data, StreamPartial)]


def resume(items: Sequence[StreamEvent]) -> StreamCursor | None:
    """Returns the cursor that the client sends back."""
    return decode(items[-1].id)
