"""protocol §5.4, §11: late copies at a pause, and ends before and after it."""

import pytest

from asya.ends.aws.end_claims import Claim, EndClaims
from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import codec
from asya.protocol.events import COUNT_LIMIT
from asya.protocol.mesh_table import Actor
from asya.tasks.task_state import TaskState
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.light_actor import never
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.pausing import MESH, FakeEvents, continued, here, run_pause, status_of, stored
from tests.doubles.task_states import SILENT

LATE = {"status": status(deadline_at="2026-01-01T00:00:00Z")}


def claims(world: MeshWorld) -> EndClaims:
    return EndClaims(world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]


@pytest.mark.rule("5.4.at-the-pause")
@pytest.mark.parametrize("state", ["paused", "running", None])
def test_its_own_late_copy_leaves_the_task_paused(world: MeshWorld, bus: FakeEvents, state: str | None) -> None:
    run_pause(world, here())
    before = stored(world)
    if state is not None:
        world.states["env-1"] = TaskState(id="env-1", status=state, pause_epoch=1)
    assert run_pause(world, here(**LATE), times=2) == []
    assert (world.targets, stored(world), len(bus.details)) == ([], before, 1)
    continued(world)
    assert run_pause(world, here(**LATE), times=3) == []
    assert world.targets == ["post"]


@pytest.mark.rule("5.4.at-the-pause")
def test_a_pause_that_died_before_its_report_is_finished_after_the_deadline(world: MeshWorld, bus: FakeEvents) -> None:
    world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    assert run_pause(world, here()) == ["message-0"]
    assert run_pause(world, here(**LATE), times=2) == []
    assert world.targets == []
    assert "paused" in world.gateway.reported("env-1")
    assert len(bus.details) == 1


@pytest.mark.rule("5.4.late-copies")
def test_a_pause_before_the_last_one_is_over(world: MeshWorld, bus: FakeEvents) -> None:
    world.states["env-1"] = TaskState(id="env-1", status="paused", pause_epoch=4)
    assert run_pause(world, here(**LATE)) == []
    assert (world.targets, world.s3.keys("paused/"), bus.details) == ([], [], [])


@pytest.mark.rule("11.pause.ends")
@pytest.mark.parametrize(("position", "outcome"), [(0, "stale"), (1, "stale"), (2, "taken")])
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
def test_no_end_at_or_below_the_pause_counts(
    world: MeshWorld, bus: FakeEvents, phase: str, position: int, outcome: str
) -> None:
    world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]  # it is noted before it is reported
    assert run_pause(world, here()) == ["message-0"]
    claim = Claim("env-1", 0, phase, f"{phase}/env-1.json", position)
    assert claims(world).take(claim, epoch_seconds=0).outcome == outcome


@pytest.mark.rule("11.pause.ends")
def test_without_a_pre_flight_answer_the_end_of_a_late_copy_is_refused(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    late = message(route={"prev": [], "curr": "infer", "next": ["approve"]}, **LATE)
    actor = build_sidecar(world.light(never, others={"approve": Actor(kind="pause")}))
    world.state_reads.error = SILENT
    assert batch_failures(actor.process(sqs_event(late))) == []
    (failed,) = world.sent("x-sink")
    one_frame = mesh({"infer": Actor(kind="handler", handler="handlers.infer", gives_one_frame=True)})
    sink = build_sink(world.services("x-sink", one_frame))
    assert batch_failures(sink.process(sqs_event(codec.encode(failed)))) == []
    assert "failed" not in world.gateway.reported("env-1")
    assert world.s3.keys("results/failed/") == []
    assert len(world.s3.keys("results/superseded/")) == 1


@pytest.mark.rule("11.pause.ends")
def test_an_unreadable_message_ends_a_task_that_has_paused(world: MeshWorld, bus: FakeEvents) -> None:
    """Nobody knows from which hop it comes."""
    run_pause(world, here())
    broken = here(headers={"x-asya-payload-ref": {"key": "elsewhere"}})
    assert batch_failures(build_sidecar(world.light(never)).process(sqs_event(broken))) == []
    (unread,) = world.sent("x-sump")
    assert batch_failures(build_sump(world.services("x-sump", MESH)).process(sqs_event(codec.encode(unread)))) == []
    assert world.gateway.reported("env-1")[-1] == "failed"


@pytest.mark.rule("11.pause.noted")
@pytest.mark.parametrize("phase", ["failed", "succeeded"])
def test_a_task_that_has_ended_does_not_pause(world: MeshWorld, bus: FakeEvents, phase: str) -> None:
    claims(world).take(Claim("env-1", 0, phase, f"{phase}/env-1.json", 1), epoch_seconds=0)
    assert run_pause(world, here()) == []
    assert (world.targets, world.gateway.reported("env-1"), bus.details) == ([], [], [])


@pytest.mark.rule("11.pause.noted")
def test_a_provisional_end_hinders_no_pause(world: MeshWorld, bus: FakeEvents) -> None:
    claims(world).take(Claim("env-1", 0, "failed", "failed/env-1.json", 0, is_provisional=True), epoch_seconds=0)
    assert run_pause(world, here()) == []
    assert "paused" in world.gateway.reported("env-1")


@pytest.mark.rule("11.pause.cancel")
def test_a_pause_that_finds_its_task_claimed_as_canceled_ends_its_kept_envelope(
    world: MeshWorld, bus: FakeEvents
) -> None:
    """`DELETE` came between the check of the state and the pause, and no report tells the gateway of a pause to end."""
    claims(world).take(Claim("env-1", 0, "canceled", "canceled/env-1.json", COUNT_LIMIT), epoch_seconds=0)
    for _ in range(2):
        assert run_pause(world, here()) == []
    for ended in world.sent("x-sink"):
        assert ended.status is not None
        assert (ended.id, ended.status.phase, ended.route.prev[-1]) == ("env-1", "canceled", "approve")
    assert (world.targets, world.gateway.reported("env-1"), bus.details) == (["x-sink", "x-sink"], [], [])


@pytest.mark.rule("11.pause.cancel")
def test_canceled_after_it_was_kept_the_kept_envelope_ends(world: MeshWorld, bus: FakeEvents) -> None:
    world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    assert run_pause(world, here()) == ["message-0"]
    world.states["env-1"] = TaskState(id="env-1", status="canceled")
    assert run_pause(world, here(), times=2) == []
    (sent,) = world.sent("x-sink")
    assert (status_of(sent).phase, sent.route.prev, sent.route.curr) == ("canceled", ("prep", "approve"), "x-resume")
    assert "x-asya-pause" not in sent.headers
    assert bus.details == []


@pytest.mark.rule("11.pause.cancel")
def test_canceled_after_the_resume_nothing_leaves(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    continued(world)
    world.sqs.sent.clear()
    world.states["env-1"] = TaskState(id="env-1", status="canceled", pause_epoch=1)
    assert run_pause(world, here(), times=2) == []
    assert world.targets == []
