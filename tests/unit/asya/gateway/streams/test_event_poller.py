"""Waiting for what is new of a task (`protocol §13`, `GET …/events`)."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.new_events import StreamEvent
from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.route import Route
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.stream_events import StreamPartial, StreamStatus
from tests.doubles.streams import Clock, MemoryPartials
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import ACTORS, at, event, hop, route_at
from tests.unit.asya.tasks.aws.test_tasks_many_reports import life_of

OVER = Route(ACTORS, "", ())


@dataclass
class Watched:
    """A mesh's tasks, and somebody who follows them."""

    clock: Clock = field(default_factory=Clock)
    partials: MemoryPartials = field(default_factory=MemoryPartials)
    store: MemoryTaskStore = field(default_factory=MemoryTaskStore)

    def __post_init__(self) -> None:
        self.tasks = Tasks(self.store, print, threaded=False)

    def report(self, *events: TaskEvent) -> None:
        self.tasks.report(events, self.clock.now(), may_create=True)

    def later(self, seconds: float, *events: TaskEvent) -> None:
        self.clock.events.append((seconds, lambda: self.report(*events)))

    def said_later(self, seconds: float, *messages: PartialEvent) -> None:
        self.clock.events.append((seconds, lambda: self.partials.keep(messages)))

    def next(
        self, shown: StreamCursor | None, seconds: float = 25.0, *, with_partials: bool = True
    ) -> tuple[StreamEvent, ...]:
        return EventPoller(self.tasks, self.partials, self.clock).poll(
            "t", shown, self.clock.now(), seconds, with_partials=with_partials
        )


def said(sequence: int, position: int = 0) -> PartialEvent:
    return PartialEvent(id="t", at=format_time(at(0)), data=Raw(b"{}"), actor="a", position=position, sequence=sequence)


def steps(items: Iterable[StreamEvent]) -> list[str]:
    return [
        item.type if not isinstance(item.data, StreamStatus) else item.data.step or item.data.status for item in items
    ]


def test_what_is_new_is_told_at_once() -> None:
    watched = Watched()
    watched.report(*hop("t", 0)[:1])
    assert steps(watched.next(StreamCursor())) == ["received"]
    assert watched.clock.pauses == 0


def test_one_waits_until_something_is_new() -> None:
    watched = Watched()
    watched.report(*hop("t", 0)[:1])
    shown = watched.next(StreamCursor())[-1].cursor
    watched.later(7.0, *hop("t", 0)[1:])
    assert steps(watched.next(shown)) == ["processing", "completed"]
    assert 7.0 <= watched.clock.seconds < 7.5


def test_one_does_not_wait_for_ever() -> None:
    watched = Watched()
    watched.report(*hop("t", 0)[:1])
    shown = watched.next(StreamCursor())[-1].cursor
    assert watched.next(shown) == ()
    assert watched.clock.seconds == 25.0
    assert watched.next(shown, 0.0) == ()


def test_of_a_task_that_is_not_there_nothing_is_new() -> None:
    assert Watched().next(StreamCursor()) == ()


@pytest.mark.rule("7.FLY.clients")
def test_what_a_handler_says_is_seen_within_half_a_second() -> None:
    watched = Watched()
    watched.report(*hop("t", 0)[:2])
    shown = watched.next(StreamCursor())[-1].cursor
    for number in range(1, 9):
        when = number * 1.3
        watched.said_later(when, said(number))
        items = watched.next(shown)
        assert [item.data.sequence for item in items if isinstance(item.data, StreamPartial)] == [number]
        assert watched.clock.seconds - when < 0.5
        shown = items[-1].cursor
    assert watched.next(shown, 1.0) == ()


def test_messages_that_were_seen_are_not_read_again_and_again() -> None:
    watched = Watched()
    watched.report(*hop("t", 0)[:2])
    for number in range(100):
        watched.partials.keep([said(number)])
    shown = watched.next(StreamCursor())[-1].cursor
    watched.partials.reads = 0
    assert watched.next(shown, 10.0) == ()
    assert watched.partials.reads < 100 * watched.clock.pauses / 4


def test_a_long_history_is_not_read_at_every_look() -> None:
    watched = Watched()
    watched.report(
        *(each for position in range(3) for attempt in range(1, 50) for each in hop("t", position, attempt=attempt))
    )
    shown = watched.next(StreamCursor())[-1].cursor
    reads: list[int] = []
    load = watched.tasks.read_with_hops

    class Counted(Tasks):
        def read_with_hops(self, task_id, now):  # type: ignore[no-untyped-def]
            reads.append(1)
            return load(task_id, now)

    watched.tasks = Counted(watched.store, print, threaded=False)
    assert watched.next(shown, 8.0) == ()
    assert 2 <= len(reads) <= watched.clock.pauses / 4


def test_who_wants_no_messages_is_not_woken_by_them() -> None:
    watched = Watched()
    watched.report(*hop("t", 0)[:1])
    shown = watched.next(StreamCursor())[-1].cursor
    watched.said_later(1.0, said(0))
    watched.later(3.0, *hop("t", 0)[1:2])
    assert steps(watched.next(shown, with_partials=False)) == ["processing"]


def test_the_end_waits_a_moment_for_the_hops_it_has_overtaken() -> None:
    watched = Watched()
    watched.report(*hop("t", 0), *hop("t", 1), *hop("t", 2)[:2])
    shown = watched.next(StreamCursor())[-1].cursor
    watched.later(3.0, event("t", "succeeded", 3, 3, route=OVER))
    watched.later(3.5, *hop("t", 2)[2:])
    assert steps(watched.next(shown)) == ["completed", "final"]
    assert watched.clock.seconds < 4.5


def test_the_end_does_not_wait_long_for_what_may_never_come() -> None:
    watched = Watched()
    watched.report(*hop("t", 0), event("t", "succeeded", 3, 0, route=OVER))
    items = watched.next(StreamCursor())
    assert steps(items) == ["received", "processing", "completed"]
    assert steps(watched.next(items[-1].cursor)) == ["final"]
    assert 0 < watched.clock.seconds < 1.5
    # Of a task that ended long ago nothing is on its way.
    watched.clock.seconds += 100
    before = watched.clock.seconds
    assert steps(watched.next(StreamCursor())) == ["received", "processing", "completed", "final"]
    assert watched.clock.seconds == before


@pytest.mark.rule("13.stream.id")
@pytest.mark.slow
def test_each_of_several_clients_sees_each_status_of_50_tasks_once_across_reconnects() -> None:
    """200 reports a task, shuffled, some twice; connections that end anywhere. Half of the ends come before the rest."""
    chance = random.Random(11)
    store = MemoryTaskStore(86400.0)
    clock = Clock()
    gateways = [Tasks(store, print, threaded=False) for _ in range(3)]
    ids = [f"task-{number}" for number in range(50)]
    reports = [report for task_id in ids for report in life_of(task_id)]
    chance.shuffle(reports)
    last = set(ids[::2])
    ends = [each for each in reports if each.id in last and each.status == "succeeded"]
    reports = [each for each in reports if each not in ends]
    batches = [reports[first : first + 100] for first in range(0, len(reports), 100)]
    poller = EventPoller(gateways[0], MemoryPartials(), clock)
    seen: dict[tuple[str, int], list[StreamEvent]] = {(task_id, client): [] for task_id in ids for client in (1, 2)}

    def look(client: tuple[str, int]) -> int:
        items = seen[client]
        shown = decode(items[-1].id) if items else StreamCursor()
        found = poller.poll(client[0], shown, clock.now(), 0.0)
        cut = chance.randint(0, len(found)) if len(found) > 1 else len(found)
        items += found[:cut]
        return len(found)

    for batch in (*batches, ends):
        chance.choice(gateways).report(batch, at(600), may_create=True)
        for client in chance.sample(sorted(seen), 8):
            look(client)
    for client in seen:
        while look(client):
            pass
    every = sorted((position, step) for position in range(65) for step in ("completed", "processing", "received"))
    for (task_id, _), items in seen.items():
        assert [item.type for item in items].count("final") == 1
        assert items[-1].type == "final"
        percents = [item.task.progress_percent for item in items if item.task]
        assert percents == sorted(percents)
        assert percents[-1] == 100
        told = [
            (item.data.position, item.data.step)
            for item in items
            if isinstance(item.data, StreamStatus) and item.data.position is not None and item.data.step
        ]
        assert len(set(told)) == len(told)
        if task_id in last:
            assert sorted(told) == every
        assert max(len(item.id) for item in items) < 200


def test_a_task_that_is_reopened_goes_on_with_a_snapshot() -> None:
    watched = Watched()
    watched.report(*hop("t", 0), event("t", "failed", 0, 9, reason="Timeout"))
    items = watched.next(StreamCursor())
    assert items[-1].type == "final"
    assert watched.next(items[-1].cursor, 1.0) == ()
    again = replace(event("t", "received", 0, 60), generation=1)
    watched.report(again)
    [snapshot] = watched.next(items[-1].cursor)
    assert isinstance(snapshot.data, StreamStatus)
    assert (snapshot.data.is_snapshot, snapshot.data.generation) == (True, 1)
    assert route_at(0) == snapshot.data.route
