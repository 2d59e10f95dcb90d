"""Polling a task for new events (`protocol §13`, `GET …/events`)."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.new_events import StreamEvent
from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol.envelope import Route
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.task_merge import reopened
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.stream_events import StreamPartial, StreamStatus
from tests.doubles.streams import FakeClock, MemoryPartials
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import ACTORS, at, event, hop, route_at
from tests.unit.asya.tasks.aws.test_tasks_many_reports import life_of

OVER = Route(ACTORS, "", ())


@dataclass
class PolledTask:
    """The tasks of a mesh and a poller."""

    clock: FakeClock = field(default_factory=FakeClock)
    partials: MemoryPartials = field(default_factory=MemoryPartials)
    store: MemoryTaskStore = field(default_factory=MemoryTaskStore)

    def __post_init__(self) -> None:
        self.tasks = Tasks(self.store, print, threaded=False)

    def report(self, *events: TaskEvent) -> None:
        self.tasks.report(events, self.clock.now(), may_create=True)

    def report_later(self, seconds: float, *events: TaskEvent) -> None:
        self.clock.scheduled.append((seconds, lambda: self.report(*events)))

    def publish_later(self, seconds: float, *messages: PartialEvent) -> None:
        self.clock.scheduled.append((seconds, lambda: self.partials.save(messages, self.clock.now())))

    def poll(
        self, cursor: StreamCursor | None, seconds: float = 25.0, *, with_partials: bool = True
    ) -> tuple[StreamEvent, ...]:
        return EventPoller(self.tasks, self.partials, self.clock).poll(
            "t", cursor, self.clock.now(), seconds, with_partials=with_partials
        )


def partial(sequence: int, position: int = 0, attempt: int = 1) -> PartialEvent:
    return PartialEvent(
        id="t", at=format_time(at(0)), data=Raw(b"{}"), actor="a", position=position, attempt=attempt, sequence=sequence
    )


def steps(items: Iterable[StreamEvent]) -> list[str]:
    return [
        item.type if not isinstance(item.data, StreamStatus) else item.data.step or item.data.status for item in items
    ]


def test_new_events_are_returned_at_once() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0)[:1])
    assert steps(polled.poll(StreamCursor())) == ["received"]
    assert polled.clock.sleeps == 0


def test_a_poll_waits_for_new_events() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0)[:1])
    cursor = polled.poll(StreamCursor())[-1].cursor
    polled.report_later(7.0, *hop("t", 0)[1:])
    assert steps(polled.poll(cursor)) == ["processing", "completed"]
    assert 7.0 <= polled.clock.seconds < 7.5


def test_a_poll_ends_without_events_after_its_time() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0)[:1])
    cursor = polled.poll(StreamCursor())[-1].cursor
    assert polled.poll(cursor) == ()
    assert polled.clock.seconds == 25.0
    assert polled.poll(cursor, 0.0) == ()


def test_an_unknown_task_has_no_events() -> None:
    assert PolledTask().poll(StreamCursor()) == ()


@pytest.mark.rule("7.FLY.clients")
def test_a_partial_is_returned_within_half_a_second() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0)[:2])
    cursor = polled.poll(StreamCursor())[-1].cursor
    for number in range(8):
        when = 1.3 + number * 1.3
        polled.publish_later(when, partial(number))
        items = polled.poll(cursor)
        assert [item.data.sequence for item in items if isinstance(item.data, StreamPartial)] == [number]
        assert polled.clock.seconds - when < 0.5
        cursor = items[-1].cursor
    assert polled.poll(cursor, 1.0) == ()


def test_shown_partials_are_rarely_read_again() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0)[:2])
    for number in range(100):
        polled.partials.save([partial(number)])
    cursor = polled.poll(StreamCursor())[-1].cursor
    polled.partials.reads = 0
    assert polled.poll(cursor, 10.0) == ()
    assert polled.partials.reads < 100 * polled.clock.sleeps / 4


def test_a_long_history_is_not_read_at_every_poll() -> None:
    polled = PolledTask()
    polled.report(
        *(each for position in range(3) for attempt in range(1, 50) for each in hop("t", position, attempt=attempt))
    )
    cursor = polled.poll(StreamCursor())[-1].cursor
    reads: list[int] = []
    read = polled.tasks.read_with_hops

    class Counted(Tasks):
        def read_with_hops(self, task_id, now):  # type: ignore[no-untyped-def]
            reads.append(1)
            return read(task_id, now)

    polled.tasks = Counted(polled.store, print, threaded=False)
    assert polled.poll(cursor, 8.0) == ()
    assert 2 <= len(reads) <= polled.clock.sleeps / 4


def test_partials_can_be_excluded() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0)[:1])
    cursor = polled.poll(StreamCursor())[-1].cursor
    polled.publish_later(1.0, partial(0))
    polled.report_later(3.0, *hop("t", 0)[1:2])
    assert steps(polled.poll(cursor, with_partials=False)) == ["processing"]


def test_final_waits_a_moment_for_the_last_hops() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0), *hop("t", 1), *hop("t", 2)[:2])
    cursor = polled.poll(StreamCursor())[-1].cursor
    polled.report_later(3.0, event("t", "succeeded", 3, 3, route=OVER))
    polled.report_later(3.5, *hop("t", 2)[2:])
    assert steps(polled.poll(cursor)) == ["completed", "final"]
    assert polled.clock.seconds < 4.5


def test_final_does_not_wait_long_for_missing_reports() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0), event("t", "succeeded", 3, 0, route=OVER))
    items = polled.poll(StreamCursor())
    assert steps(items) == ["received", "processing", "completed"]
    assert steps(polled.poll(items[-1].cursor)) == ["final"]
    assert 0 < polled.clock.seconds <= 2.0
    # For a task that ended long ago no reports are missing.
    polled.clock.seconds += 100
    before = polled.clock.seconds
    assert steps(polled.poll(StreamCursor())) == ["received", "processing", "completed", "final"]
    assert polled.clock.seconds == before


@pytest.mark.rule("13.stream.id")
@pytest.mark.slow
def test_each_client_gets_each_status_of_50_tasks_once_across_reconnects() -> None:
    """200 shuffled reports per task, some repeated; connections end anywhere, half of the ends arrive early."""
    chance = random.Random(11)
    store = MemoryTaskStore(86400.0)
    clock = FakeClock()
    gateways = [Tasks(store, print, threaded=False) for _ in range(3)]
    ids = [f"task-{number}" for number in range(50)]
    reports = [report for task_id in ids for report in life_of(task_id)]
    chance.shuffle(reports)
    late_ends = set(ids[::2])
    ends = [each for each in reports if each.id in late_ends and each.status == "succeeded"]
    reports = [each for each in reports if each not in ends]
    batches = [reports[first : first + 100] for first in range(0, len(reports), 100)]
    poller = EventPoller(gateways[0], MemoryPartials(), clock)
    received: dict[tuple[str, int], list[StreamEvent]] = {(task_id, client): [] for task_id in ids for client in (1, 2)}

    def poll_once(client: tuple[str, int]) -> int:
        items = received[client]
        cursor = decode(items[-1].id) if items else StreamCursor()
        events = poller.poll(client[0], cursor, clock.now(), 0.0)
        cut = chance.randint(0, len(events)) if len(events) > 1 else len(events)
        items += events[:cut]
        return len(events)

    for batch in (*batches, ends):
        chance.choice(gateways).report(batch, at(600), may_create=True)
        for client in chance.sample(sorted(received), 8):
            poll_once(client)
    for client in received:
        while poll_once(client):
            pass
    every = sorted((position, step) for position in range(65) for step in ("completed", "processing", "received"))
    for (task_id, _), items in received.items():
        assert [item.type for item in items].count("final") == 1
        assert items[-1].type == "final"
        percents = [item.task.progress_percent for item in items if item.task]
        assert percents == sorted(percents)
        assert percents[-1] == 100
        steps_shown = [
            (item.data.position, item.data.step)
            for item in items
            if isinstance(item.data, StreamStatus) and item.data.position is not None and item.data.step
        ]
        assert len(set(steps_shown)) == len(steps_shown)
        if task_id in late_ends:
            assert sorted(steps_shown) == every
        assert max(len(item.id) for item in items) < 200


def test_a_reopened_task_continues_with_a_snapshot() -> None:
    polled = PolledTask()
    polled.report(*hop("t", 0), event("t", "failed", 0, 9, reason="Timeout"))
    items = polled.poll(StreamCursor())
    assert items[-1].type == "final"
    assert polled.poll(items[-1].cursor, 1.0) == ()
    again = replace(event("t", "received", 0, 60), generation=1)
    now = polled.clock.now()
    polled.tasks.update("t", lambda record, _: reopened(record, 1, at=format_time(now)), now)
    polled.report(again)
    [snapshot] = polled.poll(items[-1].cursor)
    assert isinstance(snapshot.data, StreamStatus)
    assert (snapshot.data.is_snapshot, snapshot.data.generation) == (True, 1)
    assert route_at(0) == snapshot.data.route
