"""protocol §15: the spans of light actors, pause actors, fan-in actors and end actors."""

from typing import Any

import pytest

from asya.capabilities.pauses.lambdas.wiring import build_pause, build_resume
from asya.capabilities.pauses.resuming import release_delivery
from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.function.aws import clients
from asya.protocol import codec
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseRelease
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import mesh, message
from tests.doubles.light_actor import LAST, echo, run
from tests.doubles.mesh_world import MeshWorld, sqs_event
from tests.doubles.span_log import SpanLog, log_spans

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED = {"traceparent": f"00-{TRACE}-{CALLER}-01"}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> SpanLog:
    return log_spans(monkeypatch)


@pytest.mark.rule("15.spans")
def test_protocol_15_a_hop_is_a_span_of_its_envelopes_trace(world: MeshWorld, log: SpanLog) -> None:
    run(world, echo, message(headers=TRACED))
    (span,) = log.spans
    assert (span.context.trace_id, span.parent_id, span.service) == (TRACE, CALLER, "infer")
    assert (span.name, span.error) == ("process infer", None)
    assert world.sent("post")[0].header("traceparent") == str(span.context)
    assert span.started_at <= span.ended_at
    facts = {"asya.envelope_id": "env-1", "asya.attempt": 1, "messaging.system": "aws_sqs", "asya.route.position": 1}
    assert facts.items() <= dict(span.attributes).items()


def test_an_envelope_without_a_trace_starts_one(world: MeshWorld, log: SpanLog) -> None:
    run(world, echo, message())
    assert log.spans[0].parent_id is None


@pytest.mark.rule("15.span-errors")
def test_protocol_15_a_span_has_the_type_of_the_error_alone(world: MeshWorld, log: SpanLog) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("the customer's number is 4711")

    run(world, fail, message(headers=TRACED))
    assert log.spans[0].error == "ValueError"
    assert "4711" not in repr(log.spans)


def test_a_failed_envelope_is_traced_to_x_sump(world: MeshWorld, log: SpanLog) -> None:
    run(world, lambda payload: payload["missing"], message(headers=TRACED, payload={}))
    build_sink(world.services("x-sink")).process(sqs_event(world.messages("x-sink")[0].body))
    build_sump(world.services("x-sump")).process(sqs_event(world.messages("x-sump")[0].body))
    assert log.parents() == {
        "process infer": "outside",
        "process x-sink": "process infer",
        "process x-sump": "process infer",
    }
    assert log.named("process x-sump").error == "KeyError"
    assert log.named("process x-sink").attributes["asya.phase"] == "failed"


def test_end_actors_of_users_are_traced(world: MeshWorld, log: SpanLog) -> None:
    run(world, echo, message(headers=TRACED, route=LAST), kind="end", handler_mode="envelope", validate=False)
    assert log.parents() == {"process infer": "outside"}


@pytest.mark.rule("15.span-errors")
def test_protocol_15_a_failed_end_actor_has_its_own_error(world: MeshWorld, log: SpanLog) -> None:
    def fail(_: Any) -> Any:
        raise KeyError("no")

    run(world, fail, message(headers=TRACED, route=LAST), kind="end", handler_mode="envelope", validate=False)
    assert (log.spans[0].error, log.spans[0].attributes["asya.phase"]) == ("KeyError", "succeeded")


def test_a_pause_and_its_resume_are_spans_of_one_trace(
    world: MeshWorld, log: SpanLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bus:
        def put_events(self, **_: object) -> dict[str, Any]:
            return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}

    monkeypatch.setattr(clients, "events", Bus)
    table = mesh({"approve": Actor(kind="pause", pause=Pause(prompt="Send it?")), "x-resume": Actor(kind="crew")})
    route = {"prev": ["prep"], "curr": "approve", "next": ["post"]}
    build_pause(world.services("approve", table)).process(sqs_event(message(headers=TRACED, route=route)))
    paused = codec.decode(world.s3.content("paused/env-1/0/1.json"))
    delivery = release_delivery(paused, PauseRelease(to="x-resume", epoch=1, at="2026-01-01T00:00:00Z"))
    build_resume(world.services("x-resume", table)).process(sqs_event(delivery.body))
    assert log.parents() == {"pause approve": "outside", "process x-resume": "pause approve"}
    resumed = log.named("process x-resume").context
    assert resumed.trace_id == TRACE
    assert world.sent("post")[0].header("traceparent") == str(resumed)


def test_a_message_that_returns_is_another_span(world: MeshWorld, log: SpanLog) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal()
    for count in (1, 2):
        run(world, echo, message(headers=TRACED), receive_counts={0: count})
    assert len({span.context.span_id for span in log.spans}) == 2
