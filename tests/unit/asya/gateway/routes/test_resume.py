"""protocol §11, §13: the resume call, the cancellation of paused tasks, and the sweep, over emulated tables and queues."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.capabilities.pauses import pausing
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.capabilities.pauses.lambdas import pause_release
from asya.capabilities.pauses.lambdas.wiring import build_releases, build_sweep
from asya.function.aws import clients
from asya.function.lambdas.environment import Environment, RealEnvironment
from asya.function.lambdas.function import Function
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Actor, Gateway, MeshTable
from asya.protocol.pause import Pause, PauseField
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from tests.doubles.api_function import ALICE, BUCKET, ApiFunction, emulated_shop
from tests.doubles.emf import metric_values, metrics
from tests.doubles.envelopes import NOW as PAUSED_AT
from tests.doubles.envelopes import hop, mesh, message, status
from tests.doubles.tasks import event
from tests.unit.memory_tables import memory_tables

BOB = {"userArn": "arn:aws:iam::123456789012:user/bob", "userId": "AIDABOB"}
FIELDS = (PauseField(name="approved", type="boolean", prompt="Go on?"),)
APPROVE = Actor(kind="pause", pause=Pause(prompt="Send it?", fields=FIELDS))
MESH = mesh(
    {"approve": APPROVE, "x-resume": Actor(kind="crew")},
    operators=("arn:aws:iam::123456789012:user/oscar",),
    gateway=Gateway(max_body=4096),
)
NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
YES = {"input": {"approved": True}}


class Clock(RealEnvironment):
    """A clock that stands still."""

    is_threaded = False

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


@dataclass
class World(ApiFunction):
    """The API function, and a paused task."""

    table: MeshTable = MESH
    environment: Environment = field(default_factory=lambda: Clock(NOW))
    now: datetime = NOW

    @property
    def paused(self) -> PausedEnvelopes:
        return PausedEnvelopes(clients.s3(), BUCKET)

    def pause(self, task_id: str = "env-1", **members: Any) -> None:
        """A task of Alice pauses at position 1, five minutes before its deadline."""
        started = _paused_hop(task_id, members)
        kept = pausing.paused_envelope(started, now=PAUSED_AT)
        about = pausing.pause_of(kept)
        assert about is not None
        self.paused.save(PauseKey(task_id, 0, 1), kept)
        events = [event(task_id, "registered", owner="AIDAALICE"), pausing.paused_report(started, about)]
        self.tasks.report(events, NOW, may_create=True)

    def post(self, task_id: str = "env-1", body: object = YES, iam: dict[str, str] = ALICE) -> tuple[int, Any]:
        return self.call(task_id, "resume", body, iam)

    def record(self, task_id: str = "env-1") -> TaskRecord:
        return self.store.records([task_id], NOW, consistent=True)[task_id].record

    def sweep(self, moment: datetime) -> None:
        build_sweep(Services(self.settings, Clock(moment))).sweep()


def _paused_hop(task_id: str, members: dict[str, Any]) -> Any:
    route = {"prev": ["prep"], "curr": "approve", "next": ["post"]}
    known = {"id": task_id, "route": route, "status": status(deadline_at="2026-11-20T12:05:00.250000Z")}
    return hop(message(**(known | members)), actor="approve", spec=APPROVE)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with memory_tables(), emulated_shop(monkeypatch, "x-resume", "x-sink"):
        found = World()
        found.pause()
        yield found


@pytest.mark.rule("2.deadline.resume", "13.resumed")
def test_resumed_it_runs_and_x_resume_gets_the_envelope(world: World) -> None:
    assert world.post() == (202, {"id": "env-1", "status": "running"})
    (sent,) = world.messages("x-resume")
    assert (sent["id"], sent["route"]["curr"], sent["payload"]) == ("env-1", "x-resume", {"text": "hello"})
    assert sent["headers"]["x-asya-resume-input"] == {"approved": True}
    assert "deadline_at" not in sent["status"]
    record = world.record()
    assert (record.status, record.resumed_epoch, record.pause, record.handover) == ("running", 1, None, None)
    assert record.deadline_at == format_time(NOW + timedelta(minutes=5))


@pytest.mark.rule("11.resume.once")
def test_a_second_resume_is_409(world: World) -> None:
    world.post()
    code, content = world.post()
    assert (code, content["error"]["code"]) == (409, "not_paused")
    assert len(world.messages("x-resume")) == 1


@pytest.mark.rule("11.resume.since")
def test_an_answer_for_an_earlier_pause_is_409(world: World) -> None:
    pause = world.record().pause
    assert pause is not None
    code, content = world.post(body=YES | {"since": "2026-11-20T09:00:00.000000Z"})
    assert (code, content["error"]["code"], "in a later pause" in content["error"]["message"]) == (
        409,
        "not_paused",
        True,
    )
    assert world.post(body=YES | {"since": 7})[0] == 400
    assert world.record().status == "paused"
    assert world.post(body=YES | {"since": pause.since})[0] == 202


@pytest.mark.rule("11.resume.input")
def test_invalid_input_is_rejected_by_field_and_the_task_stays_paused(world: World) -> None:
    code, content = world.post(body={"input": {"approved": "yes", "colour": "red"}})
    assert (code, content["error"]["code"]) == (422, "invalid_input")
    assert [each["name"] for each in content["error"]["fields"]] == ["colour", "approved"]
    assert (world.record().status, world.messages("x-resume")) == ("paused", [])
    assert world.post()[0] == 202


@pytest.mark.parametrize(
    ("body", "code"), [("{", 400), ('{"input": 1}', 400), (json.dumps({"input": "x" * 5000}), 413)]
)
def test_invalid_requests_are_rejected(world: World, body: str, code: int) -> None:
    assert world.post(body=body)[0] == code
    assert world.record().status == "paused"


def test_a_task_of_another_owner_is_not_found(world: World) -> None:
    assert world.post(iam=BOB)[0] == world.post("nobody")[0] == 404
    assert world.record().status == "paused"


def test_a_task_without_a_stored_envelope_cannot_be_resumed(world: World) -> None:
    clients.s3().delete_object(Bucket=BUCKET, Key="paused/env-1/0/1.json")
    code, content = world.post()
    assert (code, content["error"]["code"]) == (409, "not_resumable")
    assert world.record().status == "paused"


def failing(monkeypatch: pytest.MonkeyPatch, client: Any, action: str) -> None:
    def refuse(**_: Any) -> None:
        answer: Any = {"Error": {"Code": "ServiceUnavailable"}, "ResponseMetadata": {"HTTPStatusCode": 503}}
        raise ClientError(answer, action)

    monkeypatch.setattr(client, action, refuse)


@pytest.mark.rule("11.resume.pending")
def test_the_sweep_sends_an_unsent_envelope(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        failing(broken, clients.sqs(), "send_message")
        assert world.post()[0] == 202
    assert world.messages("x-resume") == []
    assert world.record().handover is not None
    assert world.post()[0] == 409
    world.sweep(NOW + timedelta(seconds=10))  # it may be about to be sent
    assert world.messages("x-resume") == []
    world.sweep(NOW + timedelta(seconds=61))
    assert [sent["headers"]["x-asya-resume-input"] for sent in world.messages("x-resume")] == [{"approved": True}]
    assert (world.record().status, world.record().handover) == ("running", None)
    world.sweep(NOW + timedelta(seconds=122))
    assert world.messages("x-resume") == []


@pytest.mark.rule("11.resume.pending")
def test_an_unrecorded_send_is_repeated_identically(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(pause_release.PauseReleases, "_clear", lambda *_: None)
        world.post()
    world.sweep(NOW + timedelta(seconds=61))
    first, second = world.messages("x-resume")
    assert first == second
    assert world.record().handover is None


def test_a_finished_release_is_not_sent_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(pause_release.PauseReleases, "_clear", lambda *_: None)
        world.post()
    assert len(world.messages("x-resume")) == 1
    world.paused.mark_resumed(PauseKey("env-1", 0, 1), at=format_time(NOW))
    world.sweep(NOW + timedelta(seconds=61))
    assert (world.messages("x-resume"), world.record().handover) == ([], None)


@pytest.mark.rule("11.pause.cancel")
def test_canceled_while_paused_x_sink_gets_the_envelope_as_canceled(world: World) -> None:
    world.tasks.report([event("env-1", "canceled", 1, 9)], NOW, may_create=True)
    record = world.record()
    found = build_releases(Function(world.settings), world.tasks, lambda delivery: delivery)
    found.finish(record, NOW)
    (sent,) = world.messages("x-sink")
    assert (sent["status"]["phase"], sent["payload"], sent["id"]) == ("canceled", {"text": "hello"}, "env-1")
    assert world.record().handover is None
    assert world.post()[0] == 409


@pytest.mark.rule("11.pause.ended-before")
@pytest.mark.parametrize("end", ["canceled", "failed"])
def test_ended_before_its_pause_was_reported_the_sweep_ends_the_envelope(world: World, end: str) -> None:
    """The pause actor has stored the envelope; its report comes to a record that has ended."""
    ended = event("env-2", end, 0, 9, reason="Timeout", error=ErrorInfo(type="Timeout", message="too late"))  # type: ignore[arg-type]
    world.tasks.report([event("env-2", "received"), ended], NOW, may_create=True)
    world.pause("env-2")
    assert world.record("env-2").status == end
    world.sweep(NOW + timedelta(minutes=1))
    (sent,) = world.messages("x-sink")
    assert (sent["id"], sent["status"]["phase"], sent["route"]["curr"]) == ("env-2", end, "x-resume")
    assert "x-asya-pause" not in sent["headers"]
    assert ("error" in sent["status"]) == (end == "failed")
    world.pause("env-2")
    world.sweep(NOW + timedelta(minutes=2))
    assert world.messages("x-sink") == []


@pytest.mark.rule("11.pause.longest")
def test_a_pause_that_would_outlive_its_record_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.sweep(PAUSED_AT + timedelta(days=29) - timedelta(minutes=1))
    assert world.record().status == "paused"
    with monkeypatch.context() as broken:
        failing(broken, clients.sqs(), "send_message")
        world.sweep(PAUSED_AT + timedelta(days=29))
    assert (world.record().status, world.messages("x-sink")) == ("failed", [])
    world.sweep(PAUSED_AT + timedelta(days=29, minutes=1))
    (sent,) = world.messages("x-sink")
    assert (sent["status"]["phase"], sent["status"]["reason"]) == ("failed", "Timeout")
    assert (sent["payload"], world.record().handover) == ({"text": "hello"}, None)
    assert world.post()[0] == 409


@pytest.mark.rule("15.PausedAge", "15.nothing")
def test_15_paused_age_is_that_of_each_actors_oldest_pause(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.sweep(PAUSED_AT + timedelta(hours=1))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "PausedAge" in line]
    assert {line["actor"]: line["PausedAge"] for line in lines} == {"approve": 3600}
    world.post()
    world.sweep(PAUSED_AT + timedelta(hours=4))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "PausedAge" in line]
    assert {line["actor"]: line["PausedAge"] for line in lines} == {}


def test_a_report_by_merge_and_one_by_the_gateway_do_not_undo_each_other(world: World) -> None:
    world.post()
    late = merge(world.record(), event("env-1", "paused", 1, 99))
    assert late.status == "running"


def test_the_stored_envelope_exists_until_the_resume(world: World) -> None:
    assert isinstance(world.paused.load(PauseKey("env-1", 0, 1)), Envelope)


@pytest.mark.rule("15.PausesOpen", "15.PausedAge", "15.Sweeps")
def test_15_the_sweep_measures_open_pauses(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.pause("env-2")
    metrics(capsys)
    world.sweep(NOW + timedelta(minutes=5))
    found = metrics(capsys)
    assert metric_values(found, "PausesOpen", actor="approve") == [2]
    (age,) = metric_values(found, "PausedAge", actor="approve")
    assert age >= 300
    assert metric_values(found, "Sweeps") == [1]
