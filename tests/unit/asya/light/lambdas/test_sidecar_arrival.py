"""protocol §5: the sidecar's checks before the handler call."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from asya.function.aws.outages import Outage
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.protocol.mesh_table import Gateway
from asya.protocol.times import format_time
from asya.tasks.task_state import TaskState
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, status
from tests.doubles.light_actor import LONG_AGO, echo, never, run
from tests.doubles.mesh_world import MeshWorld, batch_failures, recorded, sqs_event
from tests.doubles.task_states import SILENT, THROTTLED
from tests.doubles.waiting import Clock


@pytest.mark.rule("4.bad-input-is-acked")
@pytest.mark.parametrize("body", ["Hello", '{"id": "env-9"}', "\ud800", "[1]"])
def test_5_1_what_is_no_envelope_is_acked_because_x_sump_has_it(world: MeshWorld, body: str) -> None:
    assert run(world, never, body) == []
    (failed,) = world.sent("x-sump")
    assert failed.id == ("env-9" if "env-9" in body else ids.id_of_message("message-0"))
    assert world.targets == ["x-sump"]


@pytest.mark.rule("4.outage.named")
@pytest.mark.parametrize(("until", "is_named"), [(timedelta(minutes=-5), True), (timedelta(minutes=-50), False)])
def test_5_3_a_missed_deadline_names_the_outages_since_the_task_began(
    world: MeshWorld, until: timedelta, is_named: bool
) -> None:
    clock = Clock()
    now = clock.moment
    since, last = now - timedelta(hours=1), now + until
    world.services("infer").outage_notes.add([Outage("S3", since.timestamp(), last.timestamp(), "503 SlowDown")])
    began, deadline = (format_time(now - timedelta(minutes=minutes)) for minutes in (20, 1))
    assert run(world, never, message(status=status(created_at=began, deadline_at=deadline)), clock=clock) == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.reason == "Timeout"
    assert ("Meanwhile S3 did not answer from" in failed.status.error.message) == is_named


@pytest.mark.rule("5.1.log")
def test_5_1_the_log_names_the_id_and_the_message(world: MeshWorld, caplog: pytest.LogCaptureFixture) -> None:
    actor = build_sidecar(world.light(never))
    actor.process(recorded("sqs-not-an-envelope"))
    message_id = "059f36b4-87a3-44ab-83d2-661975830a7d"
    (line,) = (vars(record) for record in caplog.records if record.getMessage() == "handler not called")
    assert (line["message_id"], line["envelope_id"]) == (message_id, ids.id_of_message(message_id))
    assert line["why"] == "ParseError"


@pytest.mark.parametrize(
    ("headers", "target"),
    [({"x-asya-route-override": '"\\ud800"'}, "x-sump"), ({"x-asya-mesh-status": "1e999"}, "x-sump")],
)
def test_5_1_headers_that_nobody_can_read_crash_nothing(world: MeshWorld, headers: dict[str, str], target: str) -> None:
    text = ",".join(f'"{name}":{value}' for name, value in headers.items())
    body = message(headers=...)[:-1].decode() + f',"headers":{{{text}}}}}'
    assert run(world, echo, body, message(id="env-2")) == []
    assert world.targets == ["post", target]


@pytest.mark.rule("5.3")
def test_5_3_past_its_deadline(world: MeshWorld) -> None:
    assert run(world, never, message(status=status(deadline_at=LONG_AGO))) == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("failed", "Timeout")


@pytest.mark.rule("5.4")
@pytest.mark.parametrize("canceled", ["env-1", "env-0"])
def test_5_4_canceled_at_the_pre_flight(world: MeshWorld, canceled: str) -> None:
    """The task, or its root."""
    world.states[canceled] = TaskState(id=canceled, status="canceled")
    assert run(world, never, message(headers={"x-asya-root": "env-0"})) == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert ended.status.phase == "canceled"
    assert world.state_reads.asked == [["env-0", "env-1"]]


@pytest.mark.rule("5.4.go-on")
@pytest.mark.parametrize(("trouble", "asked"), [(THROTTLED, 2), (SILENT, 1)])
def test_5_4_without_an_answer_a_hop_goes_on(world: MeshWorld, trouble: Exception, asked: int) -> None:
    world.state_reads.error = trouble
    actor = build_sidecar(world.light(echo))
    assert batch_failures(actor.process(sqs_event(message()))) == []
    assert world.targets == ["post"]
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]
    assert batch_failures(actor.process(sqs_event(message()))) == []
    # Only silence pauses the queries of the process; an error does not.
    assert len(world.state_reads.asked) == asked


@pytest.mark.rule("5.4.other-gateway")
def test_5_4_the_task_of_another_gateway_has_no_state_here(world: MeshWorld) -> None:
    world.states["env-1"] = TaskState(id="env-1", status="canceled")
    services = world.light(echo)
    table = structs.replace(services.settings.table, gateway=Gateway(foreign_gateways=("other.example",)))
    services = replace(services, settings=replace(services.settings, table=table))
    body = message(headers={"x-asya-gateway-url": "https://other.example"})
    assert batch_failures(build_sidecar(services).process(sqs_event(body))) == []
    assert (world.targets, world.state_reads.asked) == (["post"], [])


def test_a_host_of_notifications_gets_no_reports(world: MeshWorld) -> None:
    services = world.light(echo)
    hosts = Gateway(foreign_gateways=("other.example",), notification_hosts=("hooks.example",))
    services = replace(
        services, settings=replace(services.settings, table=structs.replace(services.settings.table, gateway=hosts))
    )
    assert "other.example" in services.allowed_hosts
    assert "hooks.example" not in services.allowed_hosts


@pytest.mark.rule("3.mesh-status")
def test_3_mesh_status_off_means_no_call_to_the_gateway_at_all(world: MeshWorld) -> None:
    stealth = {"x-asya-mesh-status": "off"}
    assert run(world, echo, message(headers=stealth), message(id="env-2", headers=stealth, status=...)) == []
    assert (world.gateway.events, world.state_reads.asked) == ([], [])
    assert world.targets == ["post", "post"]


def test_3_without_a_gateway_nothing_is_reported(world: MeshWorld) -> None:
    assert run(world, echo, message(status=...), reporting=False) == []
    assert world.targets == ["post"]


@pytest.mark.rule("3.gateway-url")
def test_3_a_forged_gateway_url_is_not_called(world: MeshWorld) -> None:
    with_other = message(headers={"x-asya-gateway-url": "http://169.254.169.254/"})
    assert run(world, echo, with_other) == []
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]


@pytest.mark.rule("5.4.registered")
def test_5_4_an_envelope_without_a_status_is_registered_for_its_sender(world: MeshWorld) -> None:
    actor = build_sidecar(world.light(echo))
    assert batch_failures(actor.process(recorded("sqs-raw-message"))) == []
    # One message holds the registration and the progress of the batch.
    assert world.gateway.messages == [("asya-shop-x-reports", 4)]
    assert {event.data.owner for event in world.gateway.events} == {"AIDAEXAMPLEPERSON"}
    assert {event.data.created_at for event in world.gateway.events} == {"2026-11-20T11:59:59.000000Z"}
    (onward,) = world.sent("post")
    assert onward.status is not None
    assert onward.status.created_at == "2026-11-20T11:59:59.000000Z"
    assert onward.header("x-asya-owner") == "AIDAEXAMPLEPERSON"
    assert world.state_reads.asked == []


@pytest.mark.rule("3.owner")
def test_3_the_owner_in_a_raw_message_does_not_count(world: MeshWorld) -> None:
    forged = {"x-asya-owner": "AIDASOMEBODYELSE"}
    event = sqs_event(message(status=..., headers=forged), message(id="env-2", headers=forged))
    sender = event["Records"][0]["attributes"]["SenderId"].partition(":")[0]
    assert batch_failures(build_sidecar(world.light(echo)).process(event)) == []
    assert [onward.header("x-asya-owner") for onward in world.sent("post")] == [sender, "AIDASOMEBODYELSE"]
    owners = {event.id: event.data.owner for event in world.gateway.events}
    assert owners == {"env-1": sender, "env-2": "AIDASOMEBODYELSE"}


@pytest.mark.rule("3.owner", "5.2")
def test_3_a_postponed_message_keeps_its_owner(world: MeshWorld) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 500))
    event = sqs_event(message(status=..., headers={"x-asya-not-before": soon}))
    sender = event["Records"][0]["attributes"]["SenderId"].partition(":")[0]
    assert batch_failures(build_sidecar(world.light(echo)).process(event)) == []
    (again,) = world.sent("infer")
    assert again.header("x-asya-owner") == sender
    assert again.status is not None  # so the next receive does not take this actor for the sender of the task
    assert again.status.phase == "pending"


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize("fault", [Refusal("call"), Refusal(sender_fault=True), Refusal("silence")])
def test_5_registered_must_arrive(world: MeshWorld, fault: Refusal) -> None:
    world.sqs.refuse_always["asya-shop-x-reports"] = fault
    assert run(world, echo, message(status=...), message(id="env-2")) == ["message-0"]
    # Only the registration keeps its message; both handlers ran, and their frames have left.
    assert [envelope.id for envelope in world.sent("post")] == ["env-1", "env-2"]


@pytest.mark.rule("5.gateway-down")
def test_5_a_gateway_that_is_down_holds_nothing_up(world: MeshWorld) -> None:
    world.gateway.status = 500
    assert run(world, echo, message(status=...), message(id="env-2")) == []
    assert world.gateway.reported("env-1") == ["registered", "received", "processing", "completed"]
    assert [envelope.id for envelope in world.sent("post")] == ["env-1", "env-2"]


@pytest.mark.rule("5.progress")
def test_5_progress_that_is_not_taken_never_fails_a_message(world: MeshWorld) -> None:
    for word in ("received", "processing", "completed"):
        world.gateway.item_status["env-1", word] = 503
    assert run(world, echo, message()) == []
    assert world.targets == ["post"]


@pytest.mark.rule("5.5")
def test_5_5_a_message_on_the_wrong_queue(world: MeshWorld) -> None:
    assert run(world, never, message(route={"prev": [], "curr": "post", "next": []})) == []
    assert world.targets == ["x-sump"]


@pytest.mark.rule("5.2")
def test_5_2_not_before_is_resent_as_it_came(world: MeshWorld) -> None:
    ahead = "2126-11-20T12:00:00Z"  # more than a day ahead counts as due now
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 500))
    waiting = message(headers={"x-asya-not-before": soon})
    assert run(world, echo, waiting, message(id="env-2", headers={"x-asya-not-before": ahead})) == []
    (again,) = world.messages("infer")
    assert again.body.encode() == waiting
    assert 490 <= again.delay <= 501
    assert [envelope.id for envelope in world.sent("post")] == ["env-2"]
    assert world.gateway.reported("env-1") == []
