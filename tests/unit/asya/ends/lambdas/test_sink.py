"""protocol §11, x-sink: every end is persisted, then reported, once per id and generation."""

import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws import clients
from asya.protocol.mesh_table import Sink
from asya.protocol.times import format_time
from asya.testing.services.queues import Refusal
from tests.doubles.emf import metric_values, metrics
from tests.doubles.envelopes import message, status
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.sink import DONE, ended, results, run_sink, written

pytestmark = pytest.mark.usefixtures("sink_claims")


@pytest.mark.rule("11.sink.order")
def test_a_success_is_written_whole_then_reported_with_its_address(world: MeshWorld) -> None:
    seen: list[list[str]] = []
    world.gateway.watch = lambda path, body: seen.append(results(world))
    assert run_sink(world, ended(payload={"answer": 42})) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == {"answer": 42}
    (event,) = world.gateway.events
    assert (event.status, event.data.result_uri) == (
        "succeeded",
        "s3://asya-shop-123456789012-eu-west-1/results/succeeded/env-1.json",
    )
    assert seen == [["succeeded/env-1.json"]]  # it was there before it was reported
    assert world.targets == []


def test_a_failure_is_written_reported_and_handed_to_x_sump(world: MeshWorld) -> None:
    assert run_sink(world, ended("failed")) == []
    assert results(world) == ["failed/env-1.json"]
    assert world.gateway.reported("env-1") == ["failed"]
    assert world.targets == ["x-sump"]


@pytest.mark.rule("11.sink.at-rest")
@pytest.mark.parametrize("phase", ["canceled", "paused"])
def test_canceled_and_paused_are_written_but_not_reported_again(world: MeshWorld, phase: str) -> None:
    assert run_sink(world, ended(phase)) == []
    assert results(world) == [f"{phase}/env-1.json"]
    assert world.gateway.events == []
    assert world.targets == []


def test_what_was_paused_may_still_end(world: MeshWorld) -> None:
    assert run_sink(world, ended("paused"), ended("succeeded")) == []
    assert results(world) == ["paused/env-1.json", "succeeded/env-1.json"]
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize(
    ("fault", "is_kept"),
    [(Refusal(), False), (Refusal("call"), True), (Refusal(sender_fault=True), True), (Refusal("silence"), True)],
)
def test_the_report_must_arrive(world: MeshWorld, fault: Refusal, is_kept: bool) -> None:
    if is_kept:
        world.sqs.refuse_always["asya-shop-x-ends"] = fault
    assert run_sink(world, ended(), ended(id="env-2")) == (["message-0", "message-1"] if is_kept else [])


def test_a_batch_is_one_report_message(world: MeshWorld) -> None:
    run_sink(world, *(ended(id=f"env-{n}") for n in range(5)))
    assert world.gateway.messages == [("asya-shop-x-ends", 5)]


@pytest.mark.rule("5.gateway-down")
def test_a_gateway_that_is_down_holds_no_end_up(world: MeshWorld) -> None:
    world.gateway.status = 500
    assert run_sink(world, ended()) == []
    assert world.gateway.reported("env-1") == ["succeeded"]


def test_a_table_that_refuses_keeps_the_message_and_reports_nothing(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def update_item(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "UpdateItem")

    monkeypatch.setattr(clients, "dynamodb", Refusing)
    assert run_sink(world, ended()) == ["message-0"]
    assert world.gateway.events == []
    assert results(world) == []


def test_a_stealth_envelope_is_persisted_and_claimed_but_not_reported(world: MeshWorld) -> None:
    stealth = {"x-asya-mesh-status": "off"}
    assert run_sink(world, ended(headers=stealth), ended("failed", headers=stealth)) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert world.gateway.events == []


@pytest.mark.rule("9.children", "11.sink.children")
def test_children_are_persisted_and_reported_as_their_own_tasks(world: MeshWorld) -> None:
    child = ended(id="child-1", parent_id="env-1", headers={"x-asya-root": "env-0"})
    assert run_sink(world, child, options=Sink(hooks=("post",))) == []
    (event,) = world.gateway.events
    assert (event.id, event.parent_id, event.root_id) == ("child-1", "env-1", "env-0")
    assert world.targets == []


@pytest.mark.rule("11.hooks")
def test_hooks_get_copies_and_a_hooks_own_end_is_silent(world: MeshWorld) -> None:
    options = Sink(hooks=("post",))
    assert run_sink(world, ended(), options=options) == []
    (copy,) = world.messages("post")
    world.s3.objects.clear()
    world.gateway.events.clear()
    run_of_hook = message(
        **(
            json.loads(copy.body)
            | {"route": {"prev": ["post"], "curr": "", "next": []}, "status": status(phase="succeeded")}
        )
    )
    assert run_sink(world, run_of_hook, options=options) == []
    assert world.gateway.events == []
    assert results(world) == []
    assert world.targets == ["post"]


def test_a_hook_that_cannot_be_told_keeps_the_message(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal()
    assert run_sink(world, ended(), options=Sink(hooks=("post",))) == ["message-0"]


@pytest.mark.rule("5.end-actors")
def test_a_deadline_a_route_or_a_cancellation_is_not_looked_at(world: MeshWorld) -> None:
    late = status(phase="succeeded", deadline_at="2020-01-01T00:00:00Z")
    body = ended(route={"prev": [], "curr": "infer", "next": []}, status=late)
    assert run_sink(world, body) == []
    assert world.state_reads.asked == []
    assert world.gateway.reported("env-1") == ["succeeded"]


def test_what_cannot_be_parsed_goes_to_x_sump(world: MeshWorld) -> None:
    assert run_sink(world, b"junk") == []
    assert world.targets == ["x-sump"]


@pytest.mark.rule("4.claim-check.bad-reference", "11.sump.payload")
@pytest.mark.parametrize(("phase", "reason"), [("succeeded", "ParseError"), ("failed", "RuntimeError")])
def test_an_end_whose_payload_is_gone_fails_at_its_position(world: MeshWorld, phase: str, reason: str) -> None:
    reference = {"key": "payloads/ab/gone.json", "size": 2, "sha256": "0" * 64}
    assert run_sink(world, ended(phase, payload=None, headers={"x-asya-payload-ref": reference})) == []
    (failed,) = world.sent("x-sump")
    assert (failed.status and failed.status.reason, failed.route.position) == (reason, 2)
    assert failed.header("x-asya-payload-ref") == reference
    assert (world.targets, written(world)) == (["x-sump"], [])


@pytest.mark.rule("15.TimeToResult")
def test_15_the_time_from_the_creation_to_the_end_of_a_task(
    world: MeshWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    created_at = format_time(world.services("x-sink").now() - timedelta(seconds=90))
    block = status(phase="succeeded", reason="Completed", created_at=created_at)
    run_sink(world, message(status=block, route=DONE))
    (elapsed,) = metric_values(metrics(capsys), "TimeToResult", actor="x-sink")
    assert elapsed >= 90_000
    run_sink(world, message(id="child", parent_id="env-1", status=block, route=DONE))
    run_sink(world, ended("paused", id="waits"))
    run_sink(world, message(status=block, route=DONE))  # a duplicate
    assert len(metric_values(metrics(capsys), "TimeToResult")) <= 1
