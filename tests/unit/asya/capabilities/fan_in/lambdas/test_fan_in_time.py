"""protocol §9: timeouts and cancellation of sets."""

import json
import random
from datetime import timedelta

import pytest

from asya.protocol.mesh_table import FanIn
from asya.protocol.times import format_time
from asya.tasks.task_state import TaskState
from tests.doubles.emf import metric_values, metrics
from tests.doubles.fan_in_sets import PARTIAL, Start, child, failure, hold_back, numbers
from tests.doubles.fan_mesh import FanMesh, QueuedMessage


def checks(mesh: FanMesh) -> list[int | None]:
    """The delays of all checks so far, those of the sweep included."""
    return [message.delay for message in mesh.world.messages("x-fan-in") if "set-due" in message.body]


@pytest.mark.rule("9.timeout", "9.late")
def test_a_set_out_of_time_fails_and_a_late_slice_is_kept_and_changes_nothing(start: Start) -> None:
    mesh = start(FanIn(timeout=3000.0))
    held = hold_back(mesh, child(2))
    mesh.start(numbers(2))
    mesh.run(until=timedelta(seconds=2990))
    assert mesh.ends == []
    looks = [message.delay for message in mesh.world.messages("x-fan-in") if "set-due" in message.body]
    assert looks[:3] == [900, 900, 900]
    assert len(looks) == 4
    mesh.run(until=timedelta(seconds=20))
    status = mesh.result(phase="failed")["status"]
    assert (status["reason"], status["error"]["message"]) == (
        "FanInTimeout",
        "1 of 3 slices did not arrive in time: 2",
    )
    mesh.queued += held
    mesh.run(until=timedelta(hours=1))
    assert mesh.ends == ["failed/env-1.json"]
    assert mesh.world.gateway.reported(child(2))[-1] == "succeeded"
    (key,) = mesh.superseded
    assert key.startswith(f"superseded/{child(2)}/0/2-succeeded-")
    assert json.loads(mesh.world.s3.content(f"results/{key}"))["payload"] == {"scored": 20}
    for message in mesh.world.messages("x-fan-in"):
        mesh.send("x-fan-in", message.body)
    mesh.run()
    assert [key for key in mesh.superseded if child(2) in key] == [key]


@pytest.mark.rule("9.timeout")
def test_a_partial_set_is_merged_when_its_time_is_up(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0, on_failure="partial", quorum=1))
    mesh.is_lost = lambda message: message.actor == "score" and child(2) in message.body
    mesh.start(numbers(3))
    mesh.run(until=timedelta(seconds=59))
    assert mesh.ends == []
    mesh.run(until=timedelta(seconds=5))
    assert mesh.result()["payload"]["results"] == [{"scored": 10}, None, {"scored": 30}]


@pytest.mark.rule("9.awaits-origin")
def test_a_late_origin_ends_with_its_sets_failure(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0))
    held: list[QueuedMessage] = []

    def hold(message: QueuedMessage) -> bool:
        if message.actor == "x-fan-in" and '"slice_index":0' in message.body and not held:
            held.append(message)
            return True
        return False

    mesh.is_lost = hold
    mesh.start({"items": [{"n": 1}, {"fail": "early"}]})
    mesh.run(until=timedelta(seconds=120))
    assert mesh.ends == [f"failed/{child(2)}.json"]
    assert mesh.open_sets() == 0
    mesh.queued += held
    mesh.run()
    assert mesh.result(phase="failed")["status"]["error"]["message"] == f"slice 2 ({child(2)}) at score: early"


@pytest.mark.rule("9.timeout", "15.FanInOpen", "15.Sweeps", "15.nothing")
def test_the_sweep_finds_a_set_whose_check_was_lost(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    mesh = start(FanIn(timeout=60.0))
    mesh.is_lost = lambda message: (message.actor == "score" and child(2) in message.body) or "set-due" in message.body
    mesh.start(numbers(2))
    mesh.run(until=timedelta(minutes=10))
    mesh.sweep()
    found = metrics(capsys)
    assert metric_values(found, "FanInOpen", actor="x-fan-in") == [1]
    assert metric_values(found, "Sweeps") == [1]
    mesh.clock.moment += timedelta(minutes=10)
    mesh.is_lost = lambda message: False
    mesh.sweep()
    mesh.run()
    assert mesh.result(phase="failed")["status"]["reason"] == "FanInTimeout"
    mesh.sweep()
    assert metric_values(metrics(capsys), "FanInOpen", actor="x-fan-in") == [1]


def test_the_sweep_leaves_sets_alone_that_still_have_time(start: Start) -> None:
    mesh = start()
    mesh.is_lost = lambda message: message.actor == "score"
    mesh.start(numbers(2))
    mesh.run()
    before = len(mesh.world.messages("x-fan-in"))
    mesh.sweep()
    assert len(mesh.world.messages("x-fan-in")) == before


@pytest.mark.rule("9.canceled")
def test_a_canceled_slice_is_lost_at_once(start: Start) -> None:
    mesh = start()
    mesh.world.states[child(1)] = TaskState(id=child(1), status="canceled")
    mesh.start(numbers(2))
    mesh.run()
    assert failure(mesh) == ("SliceFailed", "SliceFailed", f"slice 1 ({child(1)}) at score was canceled")
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.canceled")
def test_a_partial_set_merges_without_a_canceled_slice(start: Start) -> None:
    mesh = start(PARTIAL)
    mesh.world.states[child(1)] = TaskState(id=child(1), status="canceled")
    mesh.start(numbers(2))
    mesh.run()
    assert mesh.result()["payload"]["results"] == [None, {"scored": 20}]
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.canceled")
@pytest.mark.parametrize("rule", [FanIn(), PARTIAL])
def test_slices_of_a_canceled_root_do_not_fail_the_origin_before_it_comes(start: Start, rule: FanIn) -> None:
    """The cancellation ends the slices first, and the origin at the door of the fan-in actor."""
    mesh = start(rule, rng=random.Random(3))
    mesh.is_lost = lambda message: message.actor in ("score", "x-fan-in")
    mesh.start(numbers(2))
    mesh.run()
    mesh.is_lost = lambda message: False
    mesh.world.states["env-1"] = TaskState(id="env-1", status="canceled")
    for actor in ("score", "x-fan-in"):
        for message in list(mesh.world.messages(actor)):
            mesh.send(actor, message.body)
        mesh.run()
    assert sorted(mesh.ends) == sorted(f"canceled/{name}.json" for name in ("env-1", child(1), child(2)))
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.timeout")
def test_without_a_timeout_of_its_own_a_set_waits_until_the_deadline(start: Start) -> None:
    mesh = start()
    held = hold_back(mesh, child(2))
    mesh.start(numbers(2), deadline_at=format_time(mesh.clock.moment + timedelta(hours=30)))
    mesh.run(until=timedelta(hours=29, minutes=52))
    assert checks(mesh) == []
    mesh.sweep()
    mesh.run(until=timedelta(minutes=7))
    assert mesh.ends == []
    mesh.sweep()
    mesh.run(until=timedelta(minutes=2))
    assert failure(mesh)[0] == "FanInTimeout"
    assert len(checks(mesh)) == 3
    assert held


@pytest.mark.rule("9.timeout.partial")
@pytest.mark.parametrize(("deadline", "merge"), [(300, 210), (100, 50)])
@pytest.mark.parametrize("first", [0, 1])
def test_a_partial_merge_leaves_the_next_actor_its_time(start: Start, deadline: int, merge: int, first: int) -> None:
    mesh = start(PARTIAL)
    late: list[QueuedMessage] = []

    def hold(message: QueuedMessage) -> bool:
        if first and message.actor == "x-fan-in" and '"slice_index":0' in message.body and not late:
            late.append(message)
            return True
        return message.actor == "score" and child(2) in message.body

    mesh.is_lost = hold
    mesh.start(numbers(2), deadline_at=format_time(mesh.clock.moment + timedelta(seconds=deadline)))
    mesh.run()
    mesh.queued += late
    mesh.run(until=timedelta(seconds=merge - 2))
    assert mesh.ends == []
    mesh.run(until=timedelta(seconds=4))
    assert mesh.result()["payload"]["results"] == [{"scored": 10}, None]
    mesh.run(until=timedelta(hours=1))
    assert [end for end in mesh.ends if "env-1" in end] == ["succeeded/env-1.json"]


@pytest.mark.rule("9.timeout.longest")
def test_a_made_up_deadline_keeps_no_set_open_for_ever(start: Start) -> None:
    mesh = start()
    hold_back(mesh, child(2))
    mesh.start(numbers(2), deadline_at="9999-12-31T23:59:59.000000Z")
    mesh.run(until=timedelta(days=29, hours=23, minutes=55))
    assert checks(mesh) == []
    assert mesh.ends == []
    mesh.sweep()
    mesh.run(until=timedelta(minutes=6))
    assert failure(mesh)[0] == "FanInTimeout"
    (item,) = (item for item in mesh.dynamodb.scan(TableName="asya-shop-fan-in")["Items"] if "due_at" in item)
    assert float(item["expires_at"]["N"]) < (mesh.clock.moment + timedelta(days=8)).timestamp()


@pytest.mark.rule("9.timeout")
def test_a_timeout_of_its_own_counts_whatever_the_deadline_is(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0))
    hold_back(mesh, child(2))
    mesh.start(numbers(2), deadline_at=format_time(mesh.clock.moment + timedelta(hours=30)))
    mesh.run(until=timedelta(seconds=70))
    assert failure(mesh)[0] == "FanInTimeout"


@pytest.mark.rule("9.timeout")
def test_without_a_deadline_a_set_waits_as_long_as_its_state_is_kept(start: Start) -> None:
    mesh = start(FanIn(ttl=86400.0))
    hold_back(mesh, child(2))
    mesh.start(numbers(2))
    mesh.run(until=timedelta(hours=23, minutes=54))
    mesh.sweep()
    mesh.run(until=timedelta(minutes=5))
    assert mesh.ends == []
    mesh.run(until=timedelta(minutes=2))
    assert failure(mesh)[0] == "FanInTimeout"


@pytest.mark.rule("9.timeout")
def test_an_end_that_comes_first_brings_the_deadline(start: Start) -> None:
    mesh = start(PARTIAL)
    deadline = mesh.clock.moment + timedelta(hours=30)
    mesh.is_lost = lambda message: message.actor == "x-fan-in" and "slice-ended" not in message.body
    mesh.start({"items": [{"fail": "x"}, {"n": 2}]}, deadline_at=format_time(deadline))
    mesh.run()
    (item,) = (item for item in mesh.dynamodb.scan(TableName="asya-shop-fan-in")["Items"] if "due_at" in item)
    assert item["due_at"]["S"] == format_time(deadline)


@pytest.mark.rule("9.canceled")
def test_a_canceled_origin_leaves_its_set_at_once(start: Start) -> None:
    mesh = start()
    mesh.is_lost = lambda message: message.actor == "score"
    mesh.start(numbers(2))
    mesh.run()
    mesh.world.states["env-1"] = TaskState(id="env-1", status="canceled")
    for message in mesh.world.messages("score"):
        mesh.send("score", message.body)
    mesh.run()
    assert mesh.result(phase="canceled")["status"]["reason"] == "Canceled"
    assert mesh.open_sets() == 0
    assert [end for end in mesh.ends if end.startswith("failed")] == []


@pytest.mark.rule("9.canceled")
def test_an_origin_that_ended_elsewhere_closes_its_set(start: Start) -> None:
    mesh = start()
    mesh.is_lost = lambda message: message.actor == "score"
    mesh.start(numbers(2))
    # The origin meets its cancellation at the fan-in actor's door.
    original, mesh.is_lost = mesh.is_lost, lambda message: message.actor in ("score", "x-fan-in")
    mesh.run()
    mesh.world.states["env-1"] = TaskState(id="env-1", status="canceled")
    mesh.is_lost = original
    for message in mesh.world.messages("x-fan-in"):
        mesh.send("x-fan-in", message.body)
    mesh.run()
    assert mesh.ends == ["canceled/env-1.json"]
    assert mesh.superseded == []
    assert mesh.open_sets() == 0
    # These slices passed their pre-flights before the cancellation.
    mesh.world.states["env-1"] = TaskState(id="env-1", status="running")
    for message in mesh.world.messages("score"):
        mesh.send("score", message.body)
    mesh.run(until=timedelta(hours=2))
    assert mesh.ends == ["canceled/env-1.json"]
    assert mesh.world.gateway.reported(child(1))[-1] == "succeeded"
