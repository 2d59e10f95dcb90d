"""Two processes at work on one lane, and time that passes between the calls of one."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.lambdas.starts import OccurrenceStarts
from asya.capabilities.triggers.lanes import LaneKey, Start, lane_of
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.triggers import Overlap, Trigger, TriggerBatch
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.idempotency import lease_of
from tests.doubles.lane_world import LaneWorld

QUEUE = Trigger(route=("infer",), overlap="queue", by="/lane")


@pytest.mark.rule("16.lane.once")
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_16_of_two_copies_at_once_one_decides(overlap: Overlap, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one has looked for a decision before the first one wrote it, and goes on after the task has ended."""
    world = LaneWorld(replace(QUEUE, overlap=overlap))
    first = world.occur(1)
    world.run()
    world.occur(2)
    world.run()
    world.end(first.task_id)
    monkeypatch.setattr(LaneStore, "decision", lambda *_: None)
    monkeypatch.setattr(TaskStarter, "task_of", lambda *_: None)
    world.occur(2)
    world.run()
    assert world.numbers() == ([1] if overlap == "skip" else [1, 2])
    monkeypatch.undo()
    world.end_all()
    assert world.numbers() == ([1] if overlap == "skip" else [1, 2])


@pytest.mark.rule("16.window")
def test_16_an_occurrence_joins_a_window_that_ends_while_the_lane_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no dead letter: the queue is not full."""
    world = LaneWorld(Trigger(route=("infer",), overlap="queue", batch=TriggerBatch(size=10, window=60.0)))
    world.occur(1)
    world.run(61)
    world.occur(2)
    world.run(59)
    read = world.tables.batch_get_item

    def slow(**request: Any) -> Any:
        """Read the record of the running task, which takes two seconds."""
        world.clock.time += timedelta(seconds=2)
        return read(**request)

    with monkeypatch.context() as reads:
        reads.setattr(world.tables, "batch_get_item", slow)
        world.occur(3)
        world.run(sweeps=False)
    assert world.dead == []
    world.run(120)
    world.end_all()
    assert [[item["n"] for item in payload["items"]] for payload in world.started.values()] == [[1], [2, 3]]


@pytest.mark.rule("16.lane.start")
def test_16_a_payload_that_another_process_is_deleting_is_no_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """That process has started the task, and of the two items of the payload it has deleted one so far."""
    world = LaneWorld(replace(QUEUE, tool="infer", route=()))
    world.occur(1, text="x" * 400_000)
    load = LaneStore.load

    def load_late(store: LaneStore, key: LaneKey, start: Start) -> Any:
        """Read the payload after the other process has begun to delete it."""
        monkeypatch.setattr(LaneStore, "load", load)
        world.lanes().look_at(key)
        return load(store, key, start)

    def forget_first(_store: LaneStore, _key: LaneKey, start: Start) -> None:
        items = world.tables.tables["asya-shop-tasks"].items
        del items[min(key for key in items if f"trigger#payload#{start.id}" in key[1])]

    monkeypatch.setattr(LaneStore, "load", load_late)
    monkeypatch.setattr(LaneStore, "forget", forget_first)
    world.run()
    assert (world.numbers(), world.dead) == ([1], [])


@pytest.mark.rule("16.lane.failed", "16.lane.start")
def test_16_a_start_that_an_older_version_cannot_perform_is_no_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has started the task in the meantime, and the next one of the lane still waits."""
    world = LaneWorld(replace(QUEUE, tool="infer", route=()))
    first = world.occur(1)
    start = OccurrenceStarts.start

    def refuse(_starts: OccurrenceStarts, occurrence: Any) -> None:
        monkeypatch.setattr(OccurrenceStarts, "start", start)
        world.lanes().look_at(lane_of(first, world.trigger))
        raise ApiError(400, "invalid_arguments", "n is no text")

    monkeypatch.setattr(OccurrenceStarts, "start", refuse)
    world.occur(2)
    world.run()
    assert (world.numbers(), world.dead, world.overlaps) == ([1], [], [])
    world.end_all()
    assert (world.numbers(), world.overlaps) == ([1, 2], [])


@pytest.mark.rule("13.start.fence", "16.overlap.queue")
@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel-previous"])
def test_16_a_refused_send_of_a_slow_process_frees_no_lane(overlap: Overlap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has taken the start over: its task runs and keeps its owner, and the next one waits."""
    world = LaneWorld(replace(QUEUE, overlap=overlap))
    first = world.occur(1)

    def slow(_envelope: Any) -> None:
        """Take longer than the lease; in the meantime the sweep lets another process finish the start."""
        monkeypatch.undo()
        world.clock.time += timedelta(seconds=lease_of(names.TRIGGERS) + 1)
        world.sweep()
        with world.active():
            world.lanes().look_at(lane_of(first, world.trigger))
        assert world.numbers() == [1]
        refusal = {"Error": {"Code": "RequestThrottled"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        raise ClientError(refusal, "SendMessage")  # type: ignore[arg-type]

    monkeypatch.setattr(world, "start", slow)
    with pytest.raises(ApiError, match="was not started"):
        world.run()
    record = world.tables.tables["asya-shop-tasks"].items[first.task_id, "record"]
    assert record["owner"]["S"] == "trigger:orders"
    world.occur(2)
    world.run(120)
    assert world.overlaps == []
