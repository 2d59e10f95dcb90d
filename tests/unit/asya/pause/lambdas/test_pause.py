"""protocol §11: x-pause and x-resume, with redeliveries and crashes."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from asya.crew.aws.end_claims import Claim, EndClaims
from asya.crew.lambdas.wiring import build_sink, build_sump
from asya.messaging.aws import clients
from asya.pause.lambdas.wiring import build_pause, build_resume
from asya.pause.resuming import release_delivery
from asya.protocol import codec
from asya.protocol.envelope import Envelope
from asya.protocol.events import TaskState
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseField, PauseRelease
from asya.protocol.status import Status
from asya.sidecar.lambdas.wiring import build_sidecar
from tests.doubles.envelopes import mesh, message, raw, status
from tests.doubles.light_actor import never
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.sqs import Refusal

FIELDS = (PauseField(name="approved", type="boolean"),)
MESH = mesh(
    {
        "approve": Actor(kind="pause", pause=Pause(prompt="Send it?", fields=FIELDS)),
        "x-resume": Actor(kind="crew"),
    }
)
ROUTE = {"prev": ["prep"], "curr": "approve", "next": ["post"]}
KEY = "paused/env-1/0/1.json"
STEALTH = {"x-asya-mesh-status": "off"}


@dataclass
class FakeEvents:
    """EventBridge's bus."""

    details: list[dict[str, Any]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    refuses: bool = False

    def put_events(self, *, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        if self.refuses:
            return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow"}]}
        self.details += [json.loads(entry["Detail"]) for entry in Entries]
        self.sources += [f"{entry['Source']}: {entry['DetailType']}" for entry in Entries]
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch, world: MeshWorld) -> FakeEvents:
    found = FakeEvents()
    monkeypatch.setattr(clients, "events", lambda: found)
    return found


def here(**members: object) -> bytes:
    return message(**({"route": ROUTE} | members))


def run(world: MeshWorld, *bodies: bytes, times: int = 1, reporting: bool = True) -> list[str]:
    services = world.services("approve", MESH, reporting=reporting)
    counts = dict.fromkeys(range(len(bodies)), times)
    return batch_failures(build_pause(services).process(sqs_event(*bodies, receive_counts=counts)))


def stored(world: MeshWorld) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.s3.content(KEY))
    return found


@pytest.mark.rule("5.9.pause", "11.pause.kept")
def test_a_pause_is_kept_reported_and_told(world: MeshWorld, bus: FakeEvents) -> None:
    assert run(world, here()) == []
    assert world.targets == []
    assert stored(world)["route"] == {"prev": ["prep", "approve"], "curr": "x-resume", "next": ["post"]}
    assert stored(world)["payload"] == {"text": "hello"}
    (report,) = [event for event in world.gateway.events if event.status == "paused"]
    assert (report.position, report.data.prompt, report.data.fields) == (1, "Send it?", FIELDS)
    assert bus.sources == ["asya.shop: Task Paused"]
    (told,) = bus.details
    assert (told["id"], told["actor"], told["prompt"], told["position"]) == ("env-1", "approve", "Send it?", 1)
    assert told["message"] == "Task env-1 of the mesh shop is paused at approve: Send it?"
    assert told["resume"].startswith("asya resume env-1 --namespace shop")


@pytest.mark.rule("11.pause.kept")
def test_a_large_payload_is_kept_inline(world: MeshWorld, bus: FakeEvents) -> None:
    services = world.services("approve", MESH)
    large = json.dumps({"text": "x" * 1_100_000}).encode()
    sent = services.claim_check.offload(_delivery(here().replace(b'{"text":"hello"}', large)))
    assert b"x-asya-payload-ref" in sent.body
    assert run(world, sent.body) == []
    assert len(stored(world)["payload"]["text"]) == 1_100_000
    assert "x-asya-payload-ref" not in stored(world)["headers"]


def _delivery(body: bytes) -> Any:
    from asya.messaging.delivery import Delivery

    return Delivery("approve", body, "next")


@pytest.mark.rule("11.pause.redelivered")
def test_redelivered_it_does_nothing_more(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    before = (stored(world), len(bus.details))
    world.gateway.states["env-1"] = TaskState(id="env-1", status="paused", pause_epoch=1)
    assert run(world, here(), times=2) == []
    assert (stored(world), len(bus.details)) == before
    assert world.targets == []
    paused = [event for event in world.gateway.events if event.status == "paused"]
    assert len({msgspec.json.encode(event) for event in paused}) == 1  # the same report again, if any


@pytest.mark.rule("11.pause.redelivered")
def test_redelivered_after_the_resume_it_is_not_even_reported(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    continued(world, b"{}")
    world.gateway.events.clear()
    assert run(world, here(), times=2) == []
    assert world.gateway.reported("env-1") == []
    assert len(bus.details) == 1


@pytest.mark.rule("11.pause.redelivered")
@pytest.mark.parametrize("dies", ["keep", "report", "tell", "note"])
def test_whatever_fails_is_completed_by_the_redelivery(world: MeshWorld, bus: FakeEvents, dies: str) -> None:
    if dies == "keep":
        world.s3.fails = lambda operation, key: operation == "put"
    if dies == "note":
        world.s3.fails = lambda operation, key: operation == "put" and key.endswith(".notified")
    if dies == "report":
        world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    bus.refuses = dies == "tell"
    assert run(world, here()) == ["message-0"]
    assert bool(bus.details) == (dies == "note")
    world.s3.fails = lambda operation, key: False
    bus.refuses = False
    assert run(world, here(), times=2) == []
    assert stored(world)["id"] == "env-1"
    assert "paused" in world.gateway.reported("env-1")
    assert len(bus.details) == (2 if dies == "note" else 1)


def test_a_bus_that_stays_out_of_reach_does_not_cost_the_task_its_pause(world: MeshWorld, bus: FakeEvents) -> None:
    bus.refuses = True
    assert run(world, here(), times=4) == ["message-0"]
    assert run(world, here(), times=5) == []
    assert "paused" in world.gateway.reported("env-1")
    assert stored(world)["id"] == "env-1"


@pytest.mark.rule("11.pause.notify")
def test_who_is_notified_finds_the_task_paused(world: MeshWorld, bus: FakeEvents) -> None:
    world.gateway.item_status["env-1", "paused"] = 503
    assert run(world, here()) == ["message-0"]
    assert bus.details == []


@pytest.mark.rule("11.pause.stealth")
def test_stealth_fails_saying_so(world: MeshWorld, bus: FakeEvents) -> None:
    assert run(world, here(headers=STEALTH)) == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "RuntimeError")
    assert "cannot pause" in failed.status.error.message
    assert (world.s3.keys("paused/"), bus.details) == ([], [])


def test_a_canceled_task_does_not_pause(world: MeshWorld, bus: FakeEvents) -> None:
    world.gateway.states["env-1"] = TaskState(id="env-1", status="canceled")
    assert run(world, here()) == []
    assert [sent.status.phase for sent in world.sent("x-sink") if sent.status] == ["canceled"]
    assert bus.details == []


@pytest.mark.parametrize(
    ("members", "end"),
    [
        ({"id": ""}, "x-sump"),
        ({"route": ROUTE | {"curr": "infer"}}, "x-sump"),
        ({"status": status(deadline_at="2026-01-01T00:00:00Z")}, "x-sink"),
    ],
)
def test_what_cannot_go_on_ends_as_at_any_actor(world: MeshWorld, bus: FakeEvents, members: Any, end: str) -> None:
    assert run(world, here(**members)) == []
    assert world.targets == [end]


def test_pauses_in_a_loop_are_kept_apart(world: MeshWorld, bus: FakeEvents) -> None:
    further = {"prev": ["prep", "approve", "x-resume", "infer"], "curr": "approve", "next": ["post"]}
    run(world, here(), here(route=further))
    assert [key for key in world.s3.keys("paused/") if key.endswith(".json")] == [KEY, "paused/env-1/0/4.json"]
    assert [detail["position"] for detail in bus.details] == [1, 4]


# --- late copies and pauses that came too late ----------------------------------------------------------------------

LATE = {"status": status(deadline_at="2026-01-01T00:00:00Z")}


def claims(world: MeshWorld) -> EndClaims:
    return EndClaims(world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]


@pytest.mark.rule("5.4.at-the-pause")
@pytest.mark.parametrize("state", ["paused", "running", None])
def test_its_own_late_copy_leaves_the_task_paused(world: MeshWorld, bus: FakeEvents, state: str | None) -> None:
    run(world, here())
    before = stored(world)
    if state is not None:
        world.gateway.states["env-1"] = TaskState(id="env-1", status=state, pause_epoch=1)
    assert run(world, here(**LATE), times=2) == []
    assert (world.targets, stored(world), len(bus.details)) == ([], before, 1)
    continued(world)
    assert run(world, here(**LATE), times=3) == []
    assert world.targets == ["post"]


@pytest.mark.rule("5.4.at-the-pause")
def test_a_pause_that_died_before_its_report_is_finished_after_the_deadline(world: MeshWorld, bus: FakeEvents) -> None:
    world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    assert run(world, here()) == ["message-0"]
    assert run(world, here(**LATE), times=2) == []
    assert world.targets == []
    assert "paused" in world.gateway.reported("env-1")
    assert len(bus.details) == 1


@pytest.mark.rule("5.4.late-copies")
def test_a_pause_before_the_last_one_is_over(world: MeshWorld, bus: FakeEvents) -> None:
    world.gateway.states["env-1"] = TaskState(id="env-1", status="paused", pause_epoch=4)
    assert run(world, here(**LATE)) == []
    assert (world.targets, world.s3.keys("paused/"), bus.details) == ([], [], [])


@pytest.mark.rule("11.pause.ends")
@pytest.mark.parametrize(("position", "outcome"), [(0, "stale"), (1, "stale"), (2, "taken")])
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
def test_no_end_at_or_below_the_pause_counts(
    world: MeshWorld, bus: FakeEvents, phase: str, position: int, outcome: str
) -> None:
    world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]  # it is noted before it is reported
    assert run(world, here()) == ["message-0"]
    claim = Claim("env-1", 0, phase, f"{phase}/env-1.json", position)
    assert claims(world).take(claim, epoch_seconds=0).outcome == outcome


@pytest.mark.rule("11.pause.ends")
def test_without_a_pre_flight_answer_the_end_of_a_late_copy_is_refused(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    late = message(route={"prev": [], "curr": "infer", "next": ["approve"]}, **LATE)
    actor = build_sidecar(world.light(never, others={"approve": Actor(kind="pause")}))
    world.gateway.answer = b"what?"
    assert batch_failures(actor.process(sqs_event(late))) == []
    world.gateway.answer = None
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
    run(world, here())
    broken = here(headers={"x-asya-payload-ref": {"key": "elsewhere"}})
    assert batch_failures(build_sidecar(world.light(never)).process(sqs_event(broken))) == []
    (unread,) = world.sent("x-sump")
    assert batch_failures(build_sump(world.services("x-sump", MESH)).process(sqs_event(codec.encode(unread)))) == []
    assert world.gateway.reported("env-1")[-1] == "failed"


@pytest.mark.rule("11.pause.noted")
@pytest.mark.parametrize("phase", ["failed", "canceled", "succeeded"])
def test_a_task_that_has_ended_does_not_pause(world: MeshWorld, bus: FakeEvents, phase: str) -> None:
    claims(world).take(Claim("env-1", 0, phase, f"{phase}/env-1.json", 1), epoch_seconds=0)
    assert run(world, here()) == []
    assert (world.targets, world.gateway.reported("env-1"), bus.details) == ([], [], [])


@pytest.mark.rule("11.pause.noted")
def test_a_provisional_end_hinders_no_pause(world: MeshWorld, bus: FakeEvents) -> None:
    claims(world).take(Claim("env-1", 0, "failed", "failed/env-1.json", 0, is_provisional=True), epoch_seconds=0)
    assert run(world, here()) == []
    assert "paused" in world.gateway.reported("env-1")


@pytest.mark.rule("11.pause.cancel")
def test_canceled_after_it_was_kept_the_kept_envelope_ends(world: MeshWorld, bus: FakeEvents) -> None:
    world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    assert run(world, here()) == ["message-0"]
    world.gateway.states["env-1"] = TaskState(id="env-1", status="canceled")
    assert run(world, here(), times=2) == []
    (sent,) = world.sent("x-sink")
    assert (status_of(sent).phase, sent.route.prev, sent.route.curr) == ("canceled", ("prep", "approve"), "x-resume")
    assert "x-asya-pause" not in sent.headers
    assert bus.details == []


@pytest.mark.rule("11.pause.cancel")
def test_canceled_after_the_resume_nothing_leaves(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    continued(world)
    world.sqs.sent.clear()
    world.gateway.states["env-1"] = TaskState(id="env-1", status="canceled", pause_epoch=1)
    assert run(world, here(), times=2) == []
    assert world.targets == []


# --- x-resume -------------------------------------------------------------------------------------------------------


def continued(world: MeshWorld, answers: bytes = b'{"approved":true}', times: int = 1) -> list[str]:
    """x-resume gets what the gateway sends."""
    found = codec.decode(world.s3.content(KEY))
    handover = PauseRelease(to="x-resume", epoch=1, at="2126-11-20T15:00:00.000000Z", input=msgspec.Raw(answers))
    return at_x_resume(world, release_delivery(found, handover).body, times)


def at_x_resume(world: MeshWorld, body: bytes, times: int = 1) -> list[str]:
    event = sqs_event(body, receive_counts={0: times})
    return batch_failures(build_resume(world.services("x-resume", MESH)).process(event))


def status_of(envelope: Envelope) -> Status:
    assert envelope.status is not None
    return envelope.status


def test_resumed_it_goes_to_the_next_actor_with_the_answers(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here(status=status(deadline_at="2126-11-20T12:00:00Z")))
    assert continued(world) == []
    (sent,) = world.sent("post")
    assert (sent.id, sent.route.prev, sent.route.curr) == ("env-1", ("prep", "approve", "x-resume"), "post")
    assert msgspec.json.decode(sent.payload) == {"text": "hello", "approved": True}
    assert (status_of(sent).phase, status_of(sent).actor) == ("pending", "post")
    assert str(status_of(sent).deadline_at) > "2126-11-20T15:00:00"
    assert [name for name in sent.headers if "pause" in name or "resume" in name] == []
    assert json.loads(world.s3.content(KEY))["resumed"] is True
    assert world.gateway.reported("env-1")[-3:] == ["received", "processing", "completed"]
    assert {event.position for event in world.gateway.events} == {1, 2}


@pytest.mark.rule("11.resume.no-pre-flight")
def test_it_asks_for_no_state(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    world.gateway.queries.clear()
    world.gateway.states["env-1"] = TaskState(id="env-1", status="paused", pause_epoch=99)
    assert continued(world) == []
    assert world.gateway.queries == []
    assert world.targets == ["post"]


@pytest.mark.rule("11.resume.tombstone")
def test_resumed_again_nothing_more_leaves(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    body = codec.encode(codec.decode(world.s3.content(KEY)).with_headers({"x-asya-resume-input": raw({})}))
    assert at_x_resume(world, body) == []
    assert at_x_resume(world, body, times=2) == []
    assert world.targets == ["post"]


@pytest.mark.rule("11.resume.tombstone")
def test_the_tombstone_comes_after_the_sending(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    body = codec.encode(codec.decode(world.s3.content(KEY)))
    world.sqs.refuse["asya-shop-post"] = [Refusal(sender_fault=True)]
    assert at_x_resume(world, body) == ["message-0"]
    assert "resumed" not in stored(world)
    assert at_x_resume(world, body, times=2) == []
    assert world.targets == ["post"]


@pytest.mark.rule("11.resume.tombstone")
def test_without_a_tombstone_the_same_is_sent_again(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    body = codec.encode(codec.decode(world.s3.content(KEY)))
    world.s3.fails = lambda operation, key: operation == "put"
    assert at_x_resume(world, body) == ["message-0"]
    world.s3.fails = lambda operation, key: False
    assert at_x_resume(world, body, times=2) == []
    first, second = world.sent("post")
    assert (first.id, first.route, first.payload) == (second.id, second.route, second.payload)


def test_at_the_end_of_the_route_it_succeeds(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here(route=ROUTE | {"next": []}))
    continued(world)
    (sent,) = world.sent("x-sink")
    assert (status_of(sent).phase, sent.route.curr) == ("succeeded", "")


def test_a_route_that_leads_nowhere_fails(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here(route=ROUTE | {"next": ["nobody"]}))
    continued(world)
    (sent,) = world.sent("x-sump")
    assert status_of(sent).reason == "RouteMismatch"


def test_headers_that_nobody_of_the_mesh_wrote_end_in_the_sump(world: MeshWorld) -> None:
    body = message(route={"prev": [], "curr": "x-resume", "next": ["post"]}, headers={"x-asya-pause": {"epoch": "x"}})
    assert at_x_resume(world, body) == []
    assert [status_of(sent).reason for sent in world.sent("x-sump")] == ["ParseError"]


def test_an_envelope_that_never_paused_passes(world: MeshWorld) -> None:
    assert at_x_resume(world, message(route={"prev": [], "curr": "x-resume", "next": ["post"]})) == []
    assert world.targets == ["post"]


@pytest.mark.rule("13.problem.senders")
def test_a_queue_that_refuses_the_resumed_envelope_is_a_problem_of_its_task(world: MeshWorld, bus: FakeEvents) -> None:
    run(world, here())
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    assert continued(world) == ["message-0"]
    (problem,) = (event.data.problem for event in world.gateway.events if event.data.problem is not None)
    assert problem.message == "the queue of post (asya-shop-post) refuses messages of x-resume: AccessDenied"
