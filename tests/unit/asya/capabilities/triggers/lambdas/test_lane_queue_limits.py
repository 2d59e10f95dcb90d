"""Full lanes, starts that fail, large payloads, and settings that a deployment changes."""

from collections import Counter
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers import lane_changes
from asya.capabilities.triggers.lambdas.lane_queue import LaneQueue
from asya.capabilities.triggers.lambdas.starts import LaneStarts
from asya.capabilities.triggers.lambdas.wiring import build_triggers
from asya.capabilities.triggers.lanes import LaneKey, Start
from asya.protocol.triggers import Overlap, Trigger, TriggerBatch
from asya.tasks.aws.task_store import UnreadableRecordError
from asya.tasks.starts.idempotency import IdempotencyKey, KeyClaim
from asya.testing.services.process import ProcessCrashed
from tests.doubles.lane_world import LaneWorld

QUEUE = Trigger(route=("infer",), overlap="queue", by="/lane")


@pytest.mark.rule("16.overlap.queue.full")
def test_16_an_occurrence_beyond_a_full_queue_is_a_dead_letter_that_can_be_redriven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no decision, so a later copy of it enters the lane."""
    monkeypatch.setattr(lane_changes, "MOST_QUEUED", 2)
    world = LaneWorld(QUEUE)
    for number in (1, 2, 3, 4):
        world.occur(number)
    world.run()
    assert [problem for _, problem in world.dead] == [
        "2 starts of the trigger wait already; redrive this one when they have ended"
    ]
    world.end_all()
    world.occur(4)
    world.run()
    assert world.numbers() == [1, 2, 3, 4]


@pytest.mark.rule("16.overlap.queue.full")
@pytest.mark.parametrize("overlap", ["cancel-previous", "queue"])
def test_16_starts_that_no_process_can_perform_fill_a_lane_too(
    overlap: Overlap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the queue of an actor refuses messages, the item of the lane would grow beyond what the table takes."""
    monkeypatch.setattr(lane_changes, "MOST_QUEUED", 2)
    world = LaneWorld(Trigger(route=("infer",), overlap=overlap))
    with monkeypatch.context() as outage:
        outage.setattr(LaneQueue, "look_at", lambda lanes, key: lanes.store.read(key).lane)
        for number in (1, 2, 3, 4):
            world.occur(number)
        world.run()
    assert len(world.dead) == (2 if overlap == "cancel-previous" else 1)
    assert all("2 starts of the trigger wait already" in problem for _, problem in world.dead)
    world.run(120)
    world.end_all()
    assert world.numbers() == ([1, 2] if overlap == "cancel-previous" else [1, 2, 3])


@pytest.mark.rule("16.lane")
def test_16_lanes_do_not_wait_for_each_other() -> None:
    """Payloads without the key share a lane with those that have null."""
    world = LaneWorld(QUEUE)
    for number, lane in enumerate(("a", "b", "a", None), 1):
        world.occur(number, lane=lane)
    world.occur(5)
    world.occur(6, lane={"b": 1, "a": 2})
    world.occur(7, lane={"a": 2, "b": 1})
    world.run()
    assert world.numbers() == [1, 2, 4, 6]
    world.end_all()
    assert sorted(world.numbers(), key=str) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.rule("16.lane.failed")
def test_16_a_start_that_can_never_succeed_is_a_dead_letter_and_the_next_one_starts() -> None:
    """Redriven, it has its payload: here after a deployment that accepts it. A copy of the letter starts nothing more."""
    world = LaneWorld(replace(QUEUE, tool="infer", route=()))
    world.occur(1)
    world.run()
    world.occur(2)
    world.occur(3, n="three")
    world.occur(4)
    world.run()
    world.end_all()
    assert world.numbers() == [1, 2, 4]
    ((body, problem),) = world.dead
    assert problem.startswith("invalid_arguments")
    world.redrive(body)
    world.run()
    assert [again for again, _ in world.dead] == [body, body]
    world.trigger = QUEUE
    world.occur(5)
    world.run()
    for _ in range(2):
        world.redrive(body)
    world.run()
    world.end_all()
    world.redrive(body)
    world.run()
    assert (world.numbers(), len(world.dead)) == ([1, 2, 4, 5, "three"], 2)


@pytest.mark.rule("16.lane.failed")
def test_16_a_start_whose_payload_has_expired_is_a_dead_letter() -> None:
    """It has waited for longer than tasks are kept. It cannot be redriven."""
    world = LaneWorld(QUEUE)
    world.occur(1)
    second = world.occur(2)
    world.run()
    items = world.tables.tables["asya-shop-tasks"].items
    for key in [key for key in items if f"trigger#payload#{second.task_id}" in key[1]]:
        del items[key]
    world.end_all()
    ((body, problem),) = world.dead
    assert "the payload has expired" in problem
    world.redrive(body)
    world.run()
    assert "the payload of the start has expired" in world.dead[1][1]


@pytest.mark.rule("16.lane.state")
def test_16_payloads_of_any_size_wait() -> None:
    """An item of the table has 400 KB. A shorter payload replaces all of a longer one. Nothing is left after the start."""
    world = LaneWorld(QUEUE)
    world.occur(1)
    world.occur(2, text="ø" * 150_000)
    world.run()
    world.end_all()
    assert world.started[list(world.started)[1]]["text"] == "ø" * 150_000
    world.trigger = Trigger(route=("infer",), debounce=30.0)
    world.occur(3, text="x" * 600_000)
    world.occur(4, text="short")
    world.run(60)
    assert world.numbers() == [1, 2, 4]
    assert not [key for key in world.tables.tables["asya-shop-tasks"].items if "trigger#payload" in key[1]]


@pytest.mark.rule("16.debounce.longest")
def test_16_a_window_without_silence_closes_after_an_hour() -> None:
    """Else a busy lane would never start a task."""
    world = LaneWorld(Trigger(route=("infer",), debounce=30.0))
    for number in range(200):
        world.occur(number)
        world.run(20)
    world.run(60)
    assert world.numbers() == [179, 199]


@pytest.mark.rule("16.batch")
def test_16_a_batch_closes_before_its_payloads_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next occurrence opens the next window. The last one closes by its time."""
    monkeypatch.setattr(lane_changes, "BATCH_BYTES", 100_000)
    world = LaneWorld(Trigger(route=("infer",), batch=TriggerBatch(size=100, window=60.0)))
    for number in range(5):
        world.occur(number, text="x" * 45_000)
    world.run(59)
    assert [len(payload["items"]) for payload in world.started.values()] == [2, 2]
    world.run(2)
    assert [item["n"] for payload in world.started.values() for item in payload["items"]] == [0, 1, 2, 3, 4]


@pytest.mark.rule("16.window.overlap")
def test_16_windows_start_as_the_overlap_says_and_a_full_queue_keeps_them_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes to a window that should have closed is a dead letter. The end of a task lets it close."""
    monkeypatch.setattr(lane_changes, "MOST_QUEUED", 1)
    world = LaneWorld(Trigger(route=("infer",), overlap="queue", batch=TriggerBatch(size=2, window=60.0)))
    for number in range(7):
        world.occur(number)
    world.run(180)
    assert [[item["n"] for item in payload["items"]] for payload in world.started.values()] == [[0, 1]]
    assert "so its window cannot close" in world.dead[0][1]
    world.end_all()
    assert [[item["n"] for item in payload["items"]] for payload in world.started.values()] == [[0, 1], [2, 3], [4, 5]]
    assert world.overlaps == []


@pytest.mark.rule("16.lane.changed")
def test_16_new_settings_hold_for_what_waits() -> None:
    """Starts that wait and an open window start after a deployment without `overlap` and `debounce`."""
    world = LaneWorld(replace(QUEUE, debounce=600.0))
    for number in (1, 2, 3):
        world.occur(number, sent=number)
        world.run(700)
    world.occur(4)
    world.run()
    assert world.numbers() == [1]
    world.trigger = Trigger(route=("infer",))
    world.run(120)
    assert world.numbers() == [1, 2, 3, 4]


@pytest.mark.rule("16.lane.once")
def test_16_an_occurrence_that_a_function_without_lanes_has_claimed_is_finished() -> None:
    """During a deployment both versions take messages."""
    world = LaneWorld(replace(QUEUE, overlap="skip"))
    world.occur(1)
    world.run()
    claimed = world.occur(2)
    with world.active():
        keys, key = world.lanes().starter.keys, IdempotencyKey(claimed.owner, claimed.key, "")
        claim = keys.claim(key, claimed.task_id, world.clock.time)
        assert isinstance(claim, KeyClaim)
        keys.undo(key, claim, removes_record=True)
    world.run()
    assert world.numbers() == [1, 2]


@pytest.mark.rule("16.overlap")
def test_16_a_record_that_cannot_be_read_counts_as_running() -> None:
    """A later version has written it."""
    world = LaneWorld(QUEUE)
    first = world.occur(1)
    world.run()
    item = world.tables.tables["asya-shop-tasks"].items[first.task_id, "record"]
    world.tables.tables["asya-shop-tasks"].items[first.task_id, "record"] = {**item, "status": {"S": "sleeping"}}
    world.occur(2)
    with pytest.raises(UnreadableRecordError):
        world.run()
    assert world.numbers() == [1]


@pytest.mark.rule("16.lane.state")
def test_16_the_sweep_keeps_a_lane_whose_task_runs_for_months() -> None:
    """Its item would expire before the task ends."""
    world = LaneWorld(QUEUE)
    first = world.occur(1)
    world.run()
    (key,) = [key for key in world.tables.tables["asya-shop-tasks"].items if key[1] == "trigger#lane"]
    before = int(world.tables.tables["asya-shop-tasks"].items[key]["expires_at"]["N"])
    world.clock.time += timedelta(days=20)
    world.sweep()
    assert int(world.tables.tables["asya-shop-tasks"].items[key]["expires_at"]["N"]) == before + 20 * 86400
    world.end(first.task_id)
    world.run()


@pytest.mark.rule("16.lane.changed")
def test_16_many_waiting_starts_follow_a_deployment_without_overlap() -> None:
    """Also if an occurrence comes before the sweep, which is no dead letter."""
    world = LaneWorld(replace(QUEUE, by=None))
    for number in range(61):
        world.occur(number)
    world.run()
    assert world.numbers() == [0]
    world.end(next(iter(world.started)))
    world.waiting.clear()
    world.trigger = Trigger(route=("infer",), overlap="allow", batch=TriggerBatch(size=1, window=60.0))
    world.occur(61)
    world.run()
    assert [payload["n"] for payload in world.started.values() if "n" in payload] == list(range(61))
    assert {"items": [{"n": 61}]} in world.started.values()


@pytest.mark.rule("16.lane.start", "16.overlap.cancel-previous")
@pytest.mark.slow
def test_16_the_starts_of_an_outage_are_performed_though_no_process_has_time_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process ends after forty of them, and the next one finds less to do."""
    world = LaneWorld(Trigger(route=("infer",), overlap="cancel-previous"))
    with monkeypatch.context() as outage:
        outage.setattr(LaneQueue, "look_at", lambda lanes, key: lanes.store.read(key).lane)
        occurrences = [world.occur(number) for number in range(120)]
        world.run()
    assert world.started == {}
    calls, start, lanes = Counter[str](), LaneStarts._start, LaneWorld.lanes

    def start_in_time(starts: LaneStarts, key: LaneKey, each: Start) -> bool:
        calls["starts"] += 1
        if calls["starts"] > 40:
            raise ProcessCrashed
        return start(starts, key, each)

    def new_process(world: LaneWorld) -> LaneQueue:
        calls.clear()
        return lanes(world)

    monkeypatch.setattr(LaneStarts, "_start", start_in_time)
    monkeypatch.setattr(LaneWorld, "lanes", new_process)
    world.run(600)
    assert world.numbers() == list(range(120))
    assert [world.status(each.task_id) for each in occurrences] == ["canceled"] * 119 + ["pending"]


@pytest.mark.rule("16.lane.once", "16.lane.changed")
@pytest.mark.parametrize(
    "trigger",
    [replace(QUEUE, overlap="skip"), replace(QUEUE, overlap="allow", batch=TriggerBatch(size=2, window=60.0))],
)
def test_16_a_repetition_starts_nothing_after_a_deployment_without_lanes(trigger: Trigger) -> None:
    """The second occurrence was skipped, or is in the batch of the first."""
    world = LaneWorld(trigger)
    occurrences = [world.occur(number) for number in (1, 2)]
    world.run()
    assert len(world.started) == 1
    world.trigger = Trigger(route=("infer",))
    record: Any = SimpleNamespace(arrival=SimpleNamespace(sent_at=world.clock.time))
    for occurrence in (*occurrences, world.occur(3)):
        with world.active():
            build_triggers(world.services("x-triggers"))._start(occurrence, record)
    assert len(world.started) == 2


@pytest.mark.rule("16.lane.changed")
def test_16_the_lanes_of_a_removed_trigger_expire() -> None:
    """The sweep would read them every minute for ever."""
    world = LaneWorld(QUEUE)
    for number in (1, 2):
        world.occur(number)
    world.run()
    (key,) = [key for key in world.tables.tables["asya-shop-tasks"].items if key[1] == "trigger#lane"]
    before = world.tables.tables["asya-shop-tasks"].items[key]["expires_at"]
    world.name = "bills"
    world.clock.time += timedelta(days=20)
    world.sweep()
    assert world.tables.tables["asya-shop-tasks"].items[key]["expires_at"] == before
    world.run()
    assert world.numbers() == [1]
