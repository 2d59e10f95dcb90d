"""The statuses and ends that follow a cursor (`protocol §13`, `GET …/events`)."""

import json
import random

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.gateway.streams.stream_cursor import StreamCursor
from asya.protocol.hops import HopRecord
from asya.protocol.pause import ShownValue
from asya.protocol.task_merge import reopened
from asya.protocol.times import format_time
from asya.tasks.stream_events import StreamStatus
from asya.tasks.view import TaskView
from tests.doubles.tasks import at, event, hop, run_note
from tests.unit.asya.gateway.streams.task_reports import World, labels, partial, percents, resume

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


@pytest.mark.rule("11.pause.shown-to", "11.callback.link")
def test_the_event_of_a_pause_has_the_question_alone() -> None:
    world = World()
    shown = (ShownValue(pointer="/total", text="s3cr3t", type="string"),)
    world.report(event("t", "paused", 0, 5, prompt="well?", shown=shown, callback="https://mesh.example/token"))
    (item,) = (item for item in world.new_events(StreamCursor()) if item.data.status == "paused")
    assert (item.data.pause and item.data.pause.prompt) == "well?"
    assert not any(word in msgspec.json.encode(item.data) for word in (b"s3cr3t", b"token"))


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
    world.report(event("t", "processing", 0, 1, run=run_note(10)))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["received 0", "processing 0"]
    assert world.new_events(resume(items)) == ()
    world.report(event("t", "processing", 0, 1, run=run_note(20)))
    further = world.new_events(resume(items))
    assert labels(further) == ["running"]
    assert isinstance(further[0].data, StreamStatus)
    assert further[0].data.run == run_note(20)
    assert world.new_events(resume(further)) == ()


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
    world.record = reopened(world.record, 1, at=format_time(at(90)))
    world.report(event("t", "received", 0, 100, generation=1))
    later = world.new_events(resume(items))
    assert labels(later) == ["snapshot running"]
    assert percents(later) == [10]
    assert labels(world.new_events(StreamCursor())) == ["received 0"]


@pytest.mark.rule("13.stream.snapshot")
@pytest.mark.slow
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


# --- provisional ends


@pytest.mark.rule("13.stream.second-final")
def test_a_second_final_follows_a_provisional_one() -> None:
    world = World()
    world.report(*hop("t", 0), event("t", "failed", 1, 30, reason="DeliveryExhausted", provisional=True))
    first = world.new_events(StreamCursor())
    assert labels(first)[-1] == "final failed"
    assert isinstance(first[-1].data, TaskView)
    assert first[-1].data.provisional
    world.report(*hop("t", 1))
    assert world.new_events(resume(first)) == ()
    world.report(event("t", "succeeded", 3, 60))
    second = world.new_events(resume(first))
    assert labels(second) == ["received 1", "processing 1", "completed 1", "final succeeded"]
    assert world.new_events(resume(second)) == ()


@pytest.mark.rule("13.stream.second-final", "13.cancel")
def test_a_second_final_follows_a_cancellation_that_lost_to_an_earlier_end() -> None:
    world = World()
    world.report(*hop("t", 0), event("t", "canceled", 0, 30, route=None))
    first = world.new_events(StreamCursor())
    assert labels(first)[-1] == "final canceled"
    assert world.new_events(resume(first)) == ()
    world.report(event("t", "succeeded", 3, 29))
    second = world.new_events(resume(first))
    assert labels(second) == ["final succeeded"]
    assert world.new_events(resume(second)) == ()


@pytest.mark.rule("13.stream.second-final", "13.provisional")
def test_a_second_final_follows_if_x_sink_claims_a_cancellation_after_a_provisional_end() -> None:
    world = World()
    world.report(*hop("t", 0), event("t", "failed", 1, 30, provisional=True))
    first = world.new_events(StreamCursor())
    world.report(event("t", "canceled", 1, 60))
    assert labels(world.new_events(resume(first))) == ["final canceled"]


@pytest.mark.rule("13.stream.second-final")
def test_a_task_that_pauses_after_a_provisional_end_goes_on() -> None:
    world = World()
    world.report(*hop("t", 0), event("t", "failed", 1, 30, provisional=True))
    first = world.new_events(StreamCursor())
    world.report(event("t", "paused", 1, 60))
    assert labels(world.new_events(resume(first))) == ["paused"]
