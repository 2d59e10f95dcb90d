"""protocol §12: the fan-in actor opens a failed set again, for a new task."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from asya.capabilities.dead_letters import set_replay
from asya.capabilities.dead_letters.replay import ReplayRequest, ReplayStart
from asya.capabilities.dead_letters.set_replay import FanOut
from asya.capabilities.fan_in import sets
from asya.capabilities.fan_in.aws.sets import FanInSets, SetRepeats
from asya.protocol import ids
from asya.protocol.codec import decode, encode
from asya.protocol.mesh_table import FanIn
from asya.testing.services.queues import Refusal
from tests.doubles.fan_in_sets import SET, Start, child, numbers, scored
from tests.doubles.fan_mesh import FanMesh, ProcessCrash
from tests.doubles.mesh_world import sqs_event

NEW = "env-2"


def new_child(index: int) -> str:
    return ids.child_id(NEW, 0, 0, index)


def fail_set(mesh: FanMesh, items: list[Any]) -> None:
    """Run a set whose items with `fail` fail it."""
    mesh.start({"items": items, "kept": "as it was"})
    mesh.run()
    assert mesh.result(phase="failed")["status"]["reason"] == "SliceFailed"


def replay(mesh: FanMesh, *, failed_only: bool, old: str = "env-1", new: str = NEW) -> bytes:
    """Record a replay and return its message, as the gateway does."""
    stored = decode(mesh.world.s3.content(f"results/failed/{old}.json"))
    fan_out = FanOut(old, 0, sets.fan_out_position(stored), "s3://…")
    start = ReplayStart(new, mesh.clock.now(), mesh.world.gateway.url, "1" * 16)
    envelope = set_replay.repeating_envelope(stored, mesh.table, start)
    record = set_replay.repeat_of(ReplayRequest(failed_only=failed_only), fan_out)
    SetRepeats(mesh.dynamodb, table="asya-shop-fan-in").save(sets.record_id(envelope), record, expires_at=2e9)
    return encode(envelope)


def mend(mesh: FanMesh) -> list[Any]:
    """Let the handler that failed succeed; returns the payloads of its calls."""
    calls: list[Any] = []

    def score(payload: Any) -> Any:
        calls.append(payload)
        return {"scored": payload.get("n", 0) * 10}

    mesh.world.monkeypatch.setattr("tests.doubles.fan_handlers.score", score)
    return calls


@pytest.mark.rule("12.set")
def test_all_slices_of_a_failed_set_run_again_from_the_kept_frames(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "no such airport", "n": 2}, {"n": 3}])
    splits = len(mesh.world.messages("split"))
    calls = mend(mesh)
    mesh.send("x-fan-in", replay(mesh, failed_only=False))
    mesh.run()
    assert mesh.result(NEW)["payload"]["results"] == scored(3)
    assert mesh.result(NEW)["payload"]["kept"] == "as it was"
    assert mesh.result(NEW)["route"] == {"prev": ["split", "x-fan-in", "post"], "curr": "", "next": []}
    assert mesh.result(NEW)["headers"]["x-asya-replay-of"] == "env-1"
    assert "x-asya-set-repeat" not in mesh.result(NEW)["headers"]
    assert sorted(call["n"] for call in calls) == [1, 2, 3]
    assert len(mesh.world.messages("split")) == splits
    assert mesh.world.gateway.reported(new_child(2))[-1] == "succeeded"
    assert mesh.open_sets() == 0


@pytest.mark.rule("12.set", "13.owner.reports")
def test_a_replay_belongs_to_its_caller_and_names_no_owner_of_the_old_task(start: Start) -> None:
    mesh = start()
    body = {
        "id": "env-1",
        "route": {"prev": [], "curr": "split", "next": ["x-fan-in", "post"]},
        "status": {"phase": "pending", "actor": "split", "attempt": 1, "max_attempts": 1},
        "headers": {"x-asya-owner": "AIDAALICE"},
        "payload": {"items": [{"n": 1}, {"fail": "no such airport", "n": 2}]},
    }
    mesh.send("split", json.dumps(body))
    mesh.run()
    assert {event.data.owner for event in mesh.world.gateway.events} == {"AIDAALICE"}
    mend(mesh)
    mesh.send("x-fan-in", replay(mesh, failed_only=False))
    reported = len(mesh.world.gateway.events)
    mesh.run()
    assert mesh.result(NEW)["payload"]["results"] == scored(2)
    # With another owner than the record, its end would not count.
    assert {event.data.owner for event in mesh.world.gateway.events[reported:]} == {None}


@pytest.mark.rule("12.set.running")
def test_the_new_task_runs_while_its_slices_run(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x", "n": 2}])
    mend(mesh)
    body = replay(mesh, failed_only=False)
    assert mesh.process("x-fan-in", body) == []
    events = [event for event in mesh.world.gateway.events if event.id == NEW]
    assert [(event.status, event.position, event.data.actor) for event in events] == [
        ("received", 1, "x-fan-in"),
        ("processing", 1, "x-fan-in"),
    ]
    mesh.run()
    assert mesh.world.gateway.reported(NEW)[2] == "completed"


@pytest.mark.rule("12.set.running")
def test_a_replay_that_has_sent_its_slices_and_died_is_reported_by_its_redelivery(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"fail": "x", "n": 1}])
    mend(mesh)
    body = replay(mesh, failed_only=True)
    mesh.send("x-fan-in", body)
    mesh.run()
    mesh.world.gateway.events.clear()
    assert mesh.process("x-fan-in", body) == []
    assert mesh.world.gateway.reported(NEW) == ["received", "processing"]


@pytest.mark.rule("12.set.running")
@pytest.mark.parametrize("new", ["stranger", "stealth"])
def test_a_replay_that_is_not_recorded_or_stealthy_reports_no_start(start: Start, new: str) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x"}])
    mend(mesh)
    envelope = decode(replay(mesh, failed_only=True))
    if new == "stranger":
        envelope = msgspec.structs.replace(envelope, id=new)
    else:
        envelope = envelope.with_headers({"x-asya-mesh-status": "off"})
    assert mesh.process("x-fan-in", encode(envelope)) == []
    assert mesh.world.gateway.reported(envelope.id) == []


@pytest.mark.rule("12.failed-only")
def test_the_lost_slices_run_again_and_the_results_of_the_others_are_copied(start: Start) -> None:
    mesh = start()
    large = {"text": "x" * 9000}
    fail_set(mesh, [{"n": 1}, {"fail": "x", "n": 2}, large, {"fail": "y", "n": 4}])
    calls = mend(mesh)
    mesh.send("x-fan-in", replay(mesh, failed_only=True))
    mesh.run()
    assert mesh.result(NEW)["payload"]["results"] == [{"scored": 10}, {"scored": 20}, large, {"scored": 40}]
    assert sorted(call["n"] for call in calls) == [2, 4]
    assert mesh.world.gateway.reported(new_child(1)) == []
    assert mesh.result(phase="failed")["id"] == "env-1"  # the old task stays


@pytest.mark.rule("12.set")
def test_a_replay_that_fails_again_can_be_replayed_itself(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x", "n": 2}, {"n": 3}])
    mesh.send("x-fan-in", replay(mesh, failed_only=True))
    mesh.run()
    assert mesh.result(NEW, "failed")["status"]["error"]["message"].endswith(" at score: x")
    calls = mend(mesh)
    mesh.send("x-fan-in", replay(mesh, failed_only=True, old=NEW, new="env-3"))
    mesh.run()
    assert mesh.result("env-3")["payload"]["results"] == scored(3)
    assert [call["n"] for call in calls] == [2]


@pytest.mark.rule("12.set")
@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 16))
def test_whenever_the_process_dies_over_a_replay_one_set_is_opened(start: Start, call: int, when: str) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x", "n": 2}, {"n": 3}])
    mend(mesh)
    body = replay(mesh, failed_only=True)
    mesh.crashes.calls, mesh.crashes.at = 0, {call: when}
    try:
        mesh.process("x-fan-in", body)
    except ProcessCrash:
        pass
    else:
        assert mesh.crashes.calls < call
    mesh.crashes.at = {}
    redelivered = mesh.function("x-fan-in")(sqs_event(body, receive_counts={0: 2}))
    assert redelivered == {"batchItemFailures": []}
    mesh.run(until=timedelta(minutes=10))
    assert len(mesh.merged(NEW)) == 1
    assert mesh.result(NEW)["payload"]["results"] == scored(3)


@pytest.mark.rule("12.set")
def test_a_replay_that_comes_twice_sends_nothing_after_its_slice_0(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"fail": "x", "n": 1}])
    calls = mend(mesh)
    body = replay(mesh, failed_only=True)
    mesh.send("x-fan-in", body)
    mesh.run()
    mesh.send("x-fan-in", body)
    mesh.run()
    assert len(calls) == 1
    assert len(mesh.merged(NEW)) == 1


def test_a_slice_that_cannot_be_sent_keeps_the_message_and_slice_0(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"fail": "x", "n": 1}])
    mend(mesh)
    mesh.world.sqs.refuse["asya-shop-score"] = [Refusal(code="X", sender_fault=True)]
    body = replay(mesh, failed_only=True)
    before = len(mesh.world.messages("x-fan-in"))
    assert mesh.process("x-fan-in", body) == ["message-0"]
    assert len(mesh.world.messages("x-fan-in")) == before
    mesh.send("x-fan-in", body)
    mesh.run()
    assert mesh.result(NEW)["payload"]["results"] == scored(1)


@pytest.mark.rule("12.set")
def test_a_message_that_the_gateway_has_not_recorded_reads_nothing(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x"}])
    envelope = decode(replay(mesh, failed_only=True))
    mesh.send("x-fan-in", encode(msgspec.structs.replace(envelope, id="stranger")))
    mesh.run()
    sunk = mesh.world.sent("x-sump")[-1]
    assert (sunk.id, sunk.status and sunk.status.reason) == ("stranger", "RouteMismatch")
    assert child(1) not in encode(sunk).decode()


@pytest.mark.rule("12.set")
def test_a_repeated_set_that_fails_is_repeated_from_the_frames_of_its_fan_in_actor(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x"}])
    mesh.send("x-fan-in", replay(mesh, failed_only=False))
    mesh.run()
    assert mesh.result(NEW, phase="failed")["status"]["reason"] == "SliceFailed"
    mend(mesh)
    again = "3f0e4f8e-0a54-4f8e-9d3c-0f6f1c9f7f10"
    mesh.send("x-fan-in", replay(mesh, failed_only=False, old=NEW, new=again))
    mesh.run()
    assert mesh.result(again)["status"]["phase"] == "succeeded"


def test_frames_that_have_expired_end_the_replay(start: Start) -> None:
    mesh = start()
    fail_set(mesh, [{"n": 1}, {"fail": "x"}])
    body = replay(mesh, failed_only=True)
    for key in list(mesh.world.s3.objects):
        if key.startswith("buffered/") and "/env-1/" in key:
            del mesh.world.s3.objects[key]
    mesh.send("x-fan-in", body)
    mesh.run()
    sunk = mesh.world.sent("x-sump")[-1]
    assert sunk.id == NEW
    assert sunk.status is not None
    assert sunk.status.error is not None
    assert "no longer kept" in sunk.status.error.message


@pytest.mark.rule("12.failed-only")
def test_a_result_that_came_after_the_end_of_its_set_is_copied_too(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0))
    held: list[Any] = []

    def hold(message: Any) -> bool:
        if message.actor == "x-fan-in" and child(2) in message.body and not held:
            held.append(message)
            return True
        return False

    mesh.is_lost = hold
    mesh.start(numbers(2))
    mesh.run(until=timedelta(minutes=2))
    assert mesh.result(phase="failed")["status"]["reason"] == "FanInTimeout"
    mesh.queued += held
    mesh.run()
    old_set = FanInSets(mesh.dynamodb, table="asya-shop-fan-in").get(SET)
    assert old_set is not None
    request, fan_out = ReplayRequest(failed_only=True), FanOut("env-1", 0, 0, "s3://…")
    assert set_replay.repeated_slices(request, fan_out, old_set.state).again == (2,)
    calls = mend(mesh)
    mesh.send("x-fan-in", replay(mesh, failed_only=True))
    mesh.run()
    assert mesh.result(NEW)["payload"]["results"] == scored(2)
    assert calls == []
    assert json.loads(next(iter(mesh.merged(NEW))))["id"] == NEW
