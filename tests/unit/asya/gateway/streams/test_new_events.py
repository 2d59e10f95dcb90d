"""The events that follow a cursor (`protocol §13`, `GET …/events`; `§7`, FLY)."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from asya.gateway.streams.attempts import has_unfinished_hops
from asya.gateway.streams.new_events import StreamEvent, new_events
from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.hops import HopRecord, fold, hop_records
from asya.protocol.route import Route
from asya.protocol.run_progress import RunNote
from asya.protocol.task import TaskRecord, merge
from asya.protocol.times import format_time
from asya.tasks.partials import PartialBatch, partial_batches
from asya.tasks.stream_events import StreamPartial, StreamStatus
from asya.tasks.view import TaskView, task_view
from tests.doubles.tasks import at, event, hop

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
    batches: dict[Any, PartialBatch] = field(default_factory=dict)

    def report(self, *events: TaskEvent) -> None:
        for each in events:
            self.record = merge(self.record, each)
        for part in hop_records(events):
            self.hops[part.key, part.stage] = part

    def publish(self, *events: PartialEvent) -> None:
        for batch in partial_batches(events):
            self.batches[batch.key] = batch

    @property
    def task(self) -> TaskView:
        return task_view(self.record, fold(self.hops.values(), self.record.generation), NOW)

    def new_events(self, cursor: StreamCursor | None, limit: int = 500) -> tuple[StreamEvent, ...]:
        partials = [self.batches[key] for key in sorted(self.batches)]
        return new_events(cursor, self.task, list(self.hops.values()), partials, limit)


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


# --- in order


def test_the_events_of_a_task_come_in_order() -> None:
    world = World()
    cursor: StreamCursor | None = StreamCursor()
    expected = [
        ((), ["pending"], [0]),
        (hop("t", 0)[:1], ["received 0"], [10]),
        (hop("t", 0)[1:], ["processing 0", "completed 0"], [15, 33]),
        (hop("t", 1), ["received 1", "processing 1", "completed 1"], [43, 48, 66]),
        ([*hop("t", 2), event("t", "succeeded", 3, 90, result=Raw(b'{"n": 1}'))], ["received 2", "processing 2", "completed 2",
                                                                           "final succeeded"], [76, 81, 99, 100]),
    ]  # fmt: skip
    for events, names, progress in expected:
        world.report(*events)
        items = world.new_events(cursor)
        assert (labels(items), percents(items)) == (names, progress)
        cursor = resume(items)
        assert world.new_events(cursor) == ()
    final = items[-1].data
    assert isinstance(final, TaskView)
    assert isinstance(final.result, Raw)
    assert json.loads(bytes(final.result)) == {"n": 1}


def test_a_late_client_gets_all_events() -> None:
    world = World()
    world.report(*hop("t", 0), *hop("t", 1), event("t", "failed", 1, 30, reason="RuntimeError"))
    assert labels(world.new_events(StreamCursor())) == [
        "received 0", "processing 0", "completed 0", "received 1", "processing 1", "completed 1", "final failed",
    ]  # fmt: skip


@pytest.mark.rule("13.stream.id")
def test_a_late_hop_is_shown_late_without_lowering_progress() -> None:
    world = World()
    world.report(*hop("t", 1))
    items = world.new_events(StreamCursor())
    assert percents(items) == [43, 48, 66]
    world.report(*hop("t", 0))
    late = world.new_events(resume(items))
    assert labels(late) == ["received 0", "processing 0", "completed 0"]
    assert percents(late) == [66, 66, 66]
    assert [item.task.status for item in late if item.task] == ["running"] * 3


def test_each_attempt_is_shown() -> None:
    world = World()
    world.report(*hop("t", 0)[:2])
    items = world.new_events(StreamCursor())
    world.report(event("t", "received", 0, 8, attempt=2), event("t", "completed", 0, 9, attempt=2))
    assert labels(world.new_events(resume(items))) == ["received 0.2", "processing 0.2", "completed 0.2"]


def test_a_repeated_report_causes_no_event() -> None:
    world = World()
    world.report(*hop("t", 0))
    items = world.new_events(StreamCursor())
    world.report(*hop("t", 0))
    world.report(event("t", "processing", 0, 99))
    assert world.new_events(resume(items)) == ()


# --- pauses, runs


def test_a_late_step_does_not_end_a_pause() -> None:
    world = World()
    world.report(*hop("t", 0)[:1], event("t", "paused", 0, 5, prompt="well?"))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["received 0", "paused"]
    assert isinstance(items[1].data, StreamStatus)
    assert items[1].data.pause is not None
    assert items[1].data.pause.prompt == "well?"
    world.report(*hop("t", 0)[1:2])
    late = world.new_events(resume(items))
    assert (labels(late), late[0].task and late[0].task.status) == (["processing 0"], "paused")
    assert world.new_events(resume(late)) == ()
    world.record = replace(world.record, status="running", pause=None, resumed_epoch=0)
    resumed = world.new_events(resume(late))
    assert labels(resumed) == ["running"]
    world.report(event("t", "paused", 1, 50))
    paused = world.new_events(resume(resumed))
    assert labels(paused) == ["paused"]
    # The task was resumed and paused again: this is another pause.
    world.record = replace(world.record, status="running", pause=None, resumed_epoch=1)
    world.report(event("t", "paused", 2, 70))
    assert labels(world.new_events(resume(paused))) == ["paused"]


def test_a_task_that_runs_without_a_hop() -> None:
    world = World()
    world.report(event("t", "registered"))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["running"]
    world.report(*hop("t", 0)[:1])
    assert labels(world.new_events(resume(items))) == ["received 0"]


def test_a_job_run_is_shown_again_when_it_progresses() -> None:
    world = World()

    def note(seconds: float) -> RunNote:
        return RunNote(
            run_id="r", job_run_id="j", state="RUNNING", at=format_time(at(seconds)), envelopes=1, done=int(seconds)
        )

    world.report(event("t", "processing", 0, 1, run=note(10)))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["received 0", "processing 0"]
    assert world.new_events(resume(items)) == ()
    world.report(event("t", "processing", 0, 1, run=note(20)))
    further = world.new_events(resume(items))
    assert labels(further) == ["running"]
    assert isinstance(further[0].data, StreamStatus)
    assert further[0].data.run == note(20)
    assert world.new_events(resume(further)) == ()


# --- partials


@pytest.mark.rule("7.FLY.clients")
def test_partials_come_in_order_between_the_start_and_the_end_of_their_hop() -> None:
    world = World()
    world.report(*hop("t", 0)[:2])
    world.publish(partial(0, 0), partial(0, 1))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["received 0", "processing 0", "partial 0.0", "partial 0.1"]
    world.publish(partial(0, 1), partial(0, 2))
    world.report(*hop("t", 0)[2:], *hop("t", 1)[:1])
    assert labels(world.new_events(resume(items))) == ["partial 0.2", "completed 0", "received 1"]


def test_a_late_partial_is_not_shown_after_a_later_one_of_its_hop() -> None:
    world = World()
    world.publish(partial(1, 5))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["partial 1.5", "pending"]
    world.publish(partial(1, 4), partial(0, 0))
    assert labels(world.new_events(resume(items))) == ["partial 0.0"]


def test_a_redelivered_hop_repeats_its_partials() -> None:
    world = World()
    world.publish(partial(0, 0), partial(0, 1))
    items = world.new_events(StreamCursor())
    world.publish(partial(0, 0, receive=2))
    assert labels(world.new_events(resume(items))) == ["partial 0.0"]


def test_one_call_is_limited_and_final_comes_last() -> None:
    world = World()
    world.publish(*(partial(0, number, data=b'"%s"' % (b"x" * 60_000)) for number in range(40)))
    world.report(event("t", "succeeded", 3, 90))
    cursor: StreamCursor | None = StreamCursor()
    received: list[str] = []
    rounds = 0
    while items := world.new_events(cursor, limit=10 if rounds == 3 else 500):
        assert len(items) <= 25
        received += labels(items)
        cursor = resume(items)
        rounds += 1
    assert received == [*(f"partial 0.{number}" for number in range(40)), "final succeeded"]
    assert rounds > 2


# --- snapshots


@pytest.mark.rule("13.stream.snapshot")
@pytest.mark.parametrize("ended", [False, True])
def test_without_a_readable_cursor_a_snapshot_comes_first(ended: bool) -> None:
    world = World()
    world.report(*hop("t", 0), *hop("t", 1)[:1])
    world.publish(partial(0, 7))
    if ended:
        world.report(event("t", "canceled", 1, 50))
    items = world.new_events(None)
    assert labels(items) == ["final canceled" if ended else "snapshot running"]
    assert percents(items) == [43]
    assert world.new_events(resume(items)) == ()
    if not ended:
        world.report(*hop("t", 1)[1:2])
        assert labels(world.new_events(resume(items))) == ["processing 1"]


@pytest.mark.rule("13.stream.snapshot")
def test_a_cursor_of_an_earlier_generation() -> None:
    world = World()
    world.report(*hop("t", 0), event("t", "failed", 0, 20, reason="Timeout"))
    items = world.new_events(StreamCursor())
    assert labels(items)[-1] == "final failed"
    world.report(*(event("t", "received", 0, 100, generation=1),))
    later = world.new_events(resume(items))
    assert labels(later) == ["snapshot running"]
    assert percents(later) == [10]
    assert labels(world.new_events(StreamCursor())) == ["received 0"]


@pytest.mark.rule("13.stream.snapshot")
def test_a_late_report_on_a_settled_hop() -> None:
    chance = random.Random(3)
    world = World()
    actors = tuple(f"a{number}" for number in range(800))

    def received(position: int, attempt: int) -> HopRecord:
        return HopRecord(
            id="t", generation=0, position=position, attempt=attempt, stage="received", actor=actors[position],
            percent=1, at="2026-11-20T09:00:00Z", received_at="2026-11-20T09:00:00Z", next=actors[position + 1 :],
        )  # fmt: skip

    for position in range(800):
        for attempt in chance.sample(range(1, 6), 3):
            world.hops[position, attempt] = received(position, attempt)
    cursor: StreamCursor | None = StreamCursor()
    event_count = 0
    while items := world.new_events(cursor):
        event_count += len(items)
        cursor = resume(items)
    assert event_count == 800 * 3
    assert cursor is not None
    assert cursor.settled is not None
    world.hops[0, 9] = received(0, 9)
    assert labels(world.new_events(cursor)) == ["snapshot running"]


# --- any order of reports, any end of the connection


def random_reports(chance: random.Random) -> list[list[TaskEvent] | list[PartialEvent]]:
    """Returns batches of reports: shuffled, some repeated, the end last."""
    events: list[TaskEvent] = []
    partials: list[list[PartialEvent]] = []
    for position in range(3):
        for attempt in range(1, chance.randint(1, 3) + 1):
            events += hop("t", position, attempt=attempt)[: chance.randint(1, 3)]
            for receive in range(1, chance.randint(1, 3)):
                count = chance.randint(1, 6)
                batch = [partial(position, number, attempt=attempt, receive=receive) for number in range(count)]
                cut = chance.randint(0, count)
                partials += [part for part in (batch[:cut], batch[max(0, cut - 1) :]) if part]
    events += chance.sample(events, len(events) // 3)
    chance.shuffle(events)
    batches: list[list[TaskEvent] | list[PartialEvent]] = [*partials]
    while events:
        size = chance.randint(1, 4)
        batches.append(events[:size])
        events = events[size:]
    chance.shuffle(batches)
    batches.append([event("t", chance.choice(["succeeded", "failed"]), 3, 200)])
    return batches


@pytest.mark.rule("13.stream.id")
@pytest.mark.slow
@settings(max_examples=120)
@given(st.randoms(use_true_random=False))
def test_no_event_is_lost_or_repeated_wherever_the_connection_ends(chance: random.Random) -> None:
    world = World()
    cursor: StreamCursor | None = StreamCursor()
    received: list[StreamEvent] = []
    for batch in random_reports(chance):
        if isinstance(batch[0], PartialEvent):
            world.publish(*[each for each in batch if isinstance(each, PartialEvent)])
        else:
            world.report(*[each for each in batch if isinstance(each, TaskEvent)])
        if chance.random() < 0.6:
            items = world.new_events(cursor, limit=chance.choice([1, 3, 500]))
            items = items[: chance.randint(0, len(items))]  # the connection ends in the middle
            received += items
            cursor = decode(items[-1].id) if items else cursor
    while items := world.new_events(cursor, limit=chance.choice([2, 500])):
        received += items
        cursor = resume(items)
    names = labels(received)
    assert names[-1].startswith("final")
    assert percents(received) == sorted(percents(received))
    assert all(isinstance(item.data, StreamStatus | StreamPartial) for item in received[:-1])
    steps = [
        (item.data.step, item.data.position, item.data.attempt)
        for item in received
        if isinstance(item.data, StreamStatus) and item.data.step
    ]
    assert sorted(steps) == sorted(expected_steps(world))
    for position, attempt in {step[1:] for step in steps}:
        of_attempt = [step[0] for step in steps if step[1:] == (position, attempt)]
        assert of_attempt == ["received", "processing", "completed"][: len(of_attempt)]
    partials = [item.data for item in received if isinstance(item.data, StreamPartial)]
    for position in range(3):
        order = [(each.attempt, each.receive, each.sequence) for each in partials if each.position == position]
        assert order == sorted(set(order))
    assert all(len(item.id) < 200 for item in received)


def expected_steps(world: World) -> set[tuple[str, int, int]]:
    """Returns the steps of every attempt, up to the furthest reported one."""
    order = {"received": 1, "start": 2, "done": 3}
    return {
        (step, part.position, part.attempt)
        for part in world.hops.values()
        for step in ("received", "processing", "completed")[: order[part.stage]]
    }


@pytest.mark.rule("7.FLY.clients")
@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_partials_that_are_written_in_order_are_all_shown(chance: random.Random) -> None:
    """Partials are written hop by hop, in batches of any size."""
    world = World()
    cursor: StreamCursor | None = StreamCursor()
    received: list[tuple[int, int]] = []
    count = {position: chance.randint(0, 8) for position in range(6)}
    for position, messages in count.items():
        done = 0
        while done < messages:
            size = chance.randint(1, messages - done)
            world.publish(*(partial(position, number) for number in range(done, done + size)))
            done += size
            items = world.new_events(cursor)
            items = items[: chance.randint(0, len(items))]
            received += [
                (each.data.position, each.data.sequence) for each in items if isinstance(each.data, StreamPartial)
            ]
            cursor = resume(items) if items else cursor
    rest = world.new_events(cursor)
    received += [(each.data.position, each.data.sequence) for each in rest if isinstance(each.data, StreamPartial)]
    assert received == [(position, number) for position, messages in count.items() for number in range(messages)]


# --- the reports of the last hop and of the end arrive at the same time


def test_a_task_may_succeed_before_its_hops_are_reported() -> None:
    world = World()
    over = Route(("a", "b", "c"), "", ())
    world.report(*hop("t", 0), *hop("t", 2), event("t", "succeeded", 3, 90, route=over))
    assert has_unfinished_hops(world.task, world.hops.values())
    world.report(*hop("t", 1)[:2])
    assert has_unfinished_hops(world.task, world.hops.values())
    world.report(*hop("t", 1)[2:])
    assert not has_unfinished_hops(world.task, world.hops.values())
    redriven = World()
    redriven.report(*hop("t", 2), event("t", "succeeded", 3, 90, route=over))
    assert not has_unfinished_hops(redriven.task, redriven.hops.values())
    failed = World()
    failed.report(*hop("t", 0)[:2], event("t", "failed", 0, 90))
    assert not has_unfinished_hops(failed.task, failed.hops.values())
    # A handler without a frame leaves the route unchanged.
    empty = World()
    empty.report(*hop("t", 0)[:2], event("t", "succeeded", 0, 90))
    assert has_unfinished_hops(empty.task, empty.hops.values())
    empty.report(*hop("t", 0)[2:])
    assert not has_unfinished_hops(empty.task, empty.hops.values())


def test_an_event_is_json() -> None:
    world = World()
    world.report(*hop("t", 0))
    data = json.loads(msgspec.json.encode(world.new_events(StreamCursor())[0].data))
    assert data == {
        "id": "t", "status": "running", "progress_percent": 10, "generation": 0, "at": "2026-11-20T09:00:00.000000Z",
        "step": "received", "actor": "inspect-dataset",
        "route": {"prev": [], "curr": "inspect-dataset", "next": ["clean-flights", "publish-report"]},
        "position": 0, "attempt": 1, "message_size_kb": 1.5,
    }  # fmt: skip
