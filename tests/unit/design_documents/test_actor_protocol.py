"""The examples of the third design document, which describes the present envelope; docs/protocol.md extends it."""

import json
import re
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from asya.protocol import headers, names
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Route, progress_percent
from asya.protocol.mesh_table import Policy, Resiliency, Sink
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.tasks.reporting.report_messages import report_url
from asya.tasks.task_state import TaskState
from tests.doubles.pipeline import Pipeline
from tests.doubles.tasks import event
from tests.unit.design_documents.conftest import MakePipeline

ENVELOPE = {
    "id": "unique-message-id",
    "parent_id": "original-message-id",
    "route": {"prev": ["prep"], "curr": "infer", "next": ["post"]},
    "headers": {"trace_id": "abc-123", "priority": "high"},
    "status": {
        "phase": "pending",
        "actor": "infer",
        "attempt": 1,
        "max_attempts": 1,
        "created_at": "2025-11-18T12:00:00Z",
        "updated_at": "2025-11-18T12:00:00Z",
        "deadline_at": "2025-11-18T12:05:00Z",
    },
    "payload": {"text": "Hello world"},
}


def echo(payload: Any) -> Any:
    return payload


def fails(_: Any) -> None:
    raise ValueError("Invalid input format")


def sent(**changes: Any) -> dict[str, Any]:
    """A message at the start of prep, infer, post; `...` leaves a key out."""
    known = ENVELOPE | {
        "route": {"prev": [], "curr": "prep", "next": ["infer", "post"]},
        "status": ...,
        "parent_id": ...,
    }
    return {name: value for name, value in (known | changes).items() if value is not ...}


def started(**status: Any) -> dict[str, Any]:
    """The same as the gateway would have sent it: registered, with a status."""
    return sent(status=ENVELOPE["status"] | {"deadline_at": "2126-01-01T00:00:00Z", "actor": "prep"} | status)  # type: ignore[operator]


def three(pipeline: MakePipeline, **changes: Any) -> Pipeline:
    return pipeline(**({"prep": echo, "infer": echo, "post": echo} | changes))


# --- the envelope


def test_the_envelope_is_read_and_written_as_it_is() -> None:
    envelope = decode(json.dumps(ENVELOPE).encode())
    assert envelope.route == Route(("prep",), "infer", ("post",))
    assert envelope.status is not None
    assert (envelope.status.phase, envelope.status.deadline_at) == ("pending", "2025-11-18T12:05:00Z")
    assert json.loads(encode(envelope)) == ENVELOPE


@pytest.mark.rule("2.phases")
@pytest.mark.parametrize("phase", ["pending", "processing", "retrying", "succeeded", "failed", "paused", "canceled"])
def test_every_phase_is_known(phase: str) -> None:
    body = json.dumps(ENVELOPE | {"status": {"phase": phase}}).encode()
    status = decode(body).status
    assert status is not None
    assert status.phase == phase


@pytest.mark.rule("1.headers", "1.status")
@pytest.mark.parametrize("optional", ["parent_id", "status", "headers"])
def test_parent_id_status_and_headers_are_optional(optional: str) -> None:
    assert decode(json.dumps({k: v for k, v in ENVELOPE.items() if k != optional}).encode()).id == "unique-message-id"


# --- the order of statuses


def record(*statuses: str) -> TaskRecord:
    """What a task's record says after these reports, the gateway's own `pending` first."""
    found: TaskRecord | None = None
    for second, status in enumerate(statuses):
        if status == "pending":
            at = event("t", "received").at
            found = TaskRecord(id="t", status="pending", created_at=at, updated_at=at)
        else:
            # What ends a paused task comes after the pause.
            position = int(found is not None and found.status == "paused")
            found = merge(found, event("t", status, position, second))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reports", "status"),
    [
        (["pending"], "pending"),
        (["pending", "received"], "running"),
        (["pending", "processing"], "running"),
        (["pending", "completed"], "running"),
        (["pending", "received", "succeeded"], "succeeded"),
        (["pending", "received", "failed"], "failed"),
        (["pending", "received", "paused"], "paused"),
        (["pending", "received", "paused", "succeeded"], "succeeded"),
        # Never backward.
        (["pending", "paused", "received"], "paused"),
        (["pending", "succeeded", "received", "paused"], "succeeded"),
        (["pending", "succeeded", "failed"], "succeeded"),
        (["pending", "failed", "canceled"], "failed"),
        # The same twice.
        (["pending", "received", "received"], "running"),
    ],
)
def test_a_status_only_goes_up(reports: list[str], status: str) -> None:
    assert record(*reports).status == status


def test_a_canceled_task_stays_canceled() -> None:
    """The report of an end that x-sink has claimed before is another case: it has a route (`protocol §13.cancel.claimed`)."""
    late = event("t", "succeeded", 1, 2)
    assert merge(record("pending", "canceled"), replace(late, data=replace(late.data, route=None))).status == "canceled"


# --- headers


@pytest.mark.rule("3.trace")
def test_the_trace_goes_through_the_whole_route_with_a_span_for_each_hop(pipeline: MakePipeline) -> None:
    given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    ran = three(pipeline).send("prep", sent(headers={"traceparent": given, "tracestate": "a=b"}))
    traces = [str(envelope.header("traceparent")) for _, envelope in ran.received]
    assert {trace.split("-")[1] for trace in traces} == {"0af7651916cd43dd8448eb211c80319c"}
    assert len({trace.split("-")[2] for trace in [given, *traces]}) == 4
    assert {envelope.header("tracestate") for _, envelope in ran.received} == {"a=b"}


def test_a_trace_is_begun_where_there_is_none(pipeline: MakePipeline) -> None:
    ran = three(pipeline).send("prep", sent())
    traces = {str(envelope.header("traceparent")).split("-")[1] for _, envelope in ran.received}
    assert len(traces) == 1
    assert re.fullmatch(r"[0-9a-f]{32}", traces.pop())


def test_the_first_attempt_is_stamped_once_and_kept_across_retries(pipeline: MakePipeline) -> None:
    retried = Resiliency(policies={"default": Policy(max_attempts=3, initial_delay=0)})
    ran = pipeline(spec={"resiliency": retried}, prep=fails).send("prep", sent())
    stamps = [envelope.header(headers.FIRST_ATTEMPT) for envelope in ran.at("prep")]
    assert len(stamps) == 2
    assert len(set(stamps)) == 1
    assert isinstance(stamps[0], str)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("https://gateway.internal:8443", "https://gateway.internal:8443"),
        ("http://gateway.internal:8443/", "http://gateway.internal:8443"),
        ("ftp://gateway.internal:8443", "https://configured"),
        ("file:///etc/passwd", "https://configured"),
        ("https://", "https://configured"),
        ("http:///path", "https://configured"),
        ("https://169.254.169.254", "https://configured"),  # today's allow-list
        (None, "https://configured"),
    ],
)
def test_the_gateways_url_is_checked(given: str | None, used: str) -> None:
    named = {} if given is None else {"x-asya-gateway-url": given}
    envelope = decode(json.dumps(sent(headers=named)).encode())
    allowed = frozenset({"gateway.internal:8443"})
    assert report_url(envelope, configured="https://configured", allowed_hosts=allowed) == used


def test_stealth_suppresses_every_report(pipeline: MakePipeline) -> None:
    ran = three(pipeline, post=fails).send("prep", sent(headers={"x-asya-mesh-status": "off"}))
    assert ran.world.gateway.events == []
    assert ran.world.state_reads.asked == []
    assert "failed/unique-message-id.json" in str(ran.world.s3.keys())


# --- queues


@pytest.mark.rule("4.queue-names")
@pytest.mark.parametrize(
    ("actor", "queue"),
    [
        ("text-analyzer", "asya-example-ecommerce-text-analyzer"),
        ("image-processor", "asya-example-ecommerce-image-processor"),
        ("x-sink", "asya-example-ecommerce-x-sink"),
        ("x-sump", "asya-example-ecommerce-x-sump"),
    ],
)
def test_names_of_queues(actor: str, queue: str) -> None:
    assert names.queue_name("example-ecommerce", actor) == queue


@pytest.mark.parametrize("end", ["x-sink", "x-sump"])
def test_end_actors_do_not_stand_in_routes(pipeline: MakePipeline, end: str) -> None:
    ran = pipeline(prep=echo).send("prep", sent(route={"prev": [], "curr": "prep", "next": [end]}))
    (refused,) = ran.at("x-sump")
    assert refused.status is not None
    assert refused.status.reason == "RouteMismatch"


# --- ends


def test_x_sink_gets_every_end_and_x_sump_what_failed_after_it(pipeline: MakePipeline) -> None:
    good = three(pipeline).send("prep", sent())
    assert [actor for actor, _ in good.received][-1] == "x-sink"
    bad = three(pipeline, infer=fails).send("prep", sent(id="other"))
    assert [actor for actor, envelope in bad.received if envelope.id == "other"] == ["infer", "x-sink", "x-sump"]


def test_hooks_come_between_x_sink_and_x_sump(pipeline: MakePipeline) -> None:
    ran = pipeline(sink=Sink(hooks=("notify",)), prep=fails, notify=echo).send("prep", sent())
    assert [actor for actor, _ in ran.received] == ["x-sink", "notify", "x-sump", "x-sink"]
    assert ran.at("notify")[0].header(headers.HOOK) == "notify"


def crashes(_: Any) -> None:
    raise SystemExit(3)


def never_ends(_: Any) -> None:
    while True:
        pass


@pytest.mark.rule("8.bypass")
@pytest.mark.parametrize(
    ("handler", "envelope", "reason"),
    [
        (never_ends, sent(), "Timeout"),
        (crashes, sent(), "RuntimeCrash"),
        (echo, sent(payload=...), "ParseError"),
        (echo, sent(route={"prev": [], "curr": "post", "next": []}), "RouteMismatch"),
    ],
)
def test_infrastructure_errors_bypass_policies_and_x_sink(
    pipeline: MakePipeline, handler: Any, envelope: dict[str, Any], reason: str
) -> None:
    retried = Resiliency(policies={"default": Policy(max_attempts=3)})
    limit = {"timeout": 0.1} if handler is never_ends else {}
    ran = pipeline(spec={"resiliency": retried, **limit}, prep=handler).send("prep", envelope)
    ((actor, ended),) = ran.received
    assert actor == "x-sump"
    assert ended.status is not None
    assert ended.status.reason == reason


# --- responses


def test_a_single_response(pipeline: MakePipeline) -> None:
    answer = {"processed": True, "timestamp": "2025-11-18T12:00:00Z"}
    ran = three(pipeline, prep=lambda _: answer).send("prep", sent())
    assert ran.payloads("infer") == [answer]
    assert ran.at("infer")[0].route == Route(("prep",), "infer", ("post",))


async def process(payload: Any) -> AsyncIterator[Any]:
    for item in payload["items"]:
        yield {"processed": item}


def test_a_generator_fans_out(pipeline: MakePipeline) -> None:
    ran = pipeline(process=process, next=echo)
    ran.send(
        "process",
        sent(id="abc-123", route={"prev": [], "curr": "process", "next": ["next"]}, payload={"items": ["a", "b", "c"]}),
    )
    assert ran.payloads("next") == [{"processed": "a"}, {"processed": "b"}, {"processed": "c"}]
    first, second, third = ran.at("next")
    assert (first.id, first.parent_id) == ("abc-123", None)
    for child in (second, third):
        assert uuid.UUID(child.id).version == 8  # the documents have version 4; this one is reserved for the mesh
        assert uuid.UUID(child.id).variant == uuid.RFC_4122
        assert child.parent_id == "abc-123"
    assert second.id != third.id


def test_a_returned_list_is_one_payload(pipeline: MakePipeline) -> None:
    ran = three(pipeline, prep=lambda _: [1, 2, 3]).send("prep", sent())
    assert ran.payloads("infer") == [[1, 2, 3]]


def test_none_ends_well_without_an_increment(pipeline: MakePipeline) -> None:
    (ended,) = three(pipeline, prep=lambda _: None).send("prep", sent()).at("x-sink")
    assert ended.route == Route((), "prep", ("infer", "post"))
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("succeeded", "Completed")


def test_an_error_is_retried_if_a_policy_says_so(pipeline: MakePipeline) -> None:
    retried = Resiliency(policies={"default": Policy(max_attempts=2, initial_delay=0)})
    ran = pipeline(spec={"resiliency": retried}, prep=fails).send("prep", sent())
    assert [actor for actor, _ in ran.received] == ["prep", "x-sink", "x-sump"]
    (ended,) = ran.at("x-sink")
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason, ended.status.attempt) == ("failed", "PolicyExhausted", 2)


def test_an_error_without_a_policy_fails(pipeline: MakePipeline) -> None:
    (ended,) = three(pipeline, prep=fails).send("prep", sent()).at("x-sink")
    assert ended.status is not None
    assert ended.status.error is not None
    assert (ended.status.phase, ended.status.error.message) == ("failed", "Invalid input format")
    assert ended.route == Route((), "prep", ("infer", "post"))


DISH = {"product_id": "123", "product_name": "Ice-cream Bourgignon"}
COOKED = DISH | {"recipe": "Cook ice-cream in tomato sauce for 3 hours"}


def test_actors_add_to_the_payload(pipeline: MakePipeline) -> None:
    ran = pipeline(
        data_loader=lambda payload: payload | {"product_name": "Ice-cream Bourgignon"},
        recipe_generator=lambda payload: payload | {"recipe": "Cook ice-cream in tomato sauce for 3 hours"},
        llm_judge=lambda payload: payload | {"recipe_eval": "INVALID", "recipe_eval_details": "Recipe is nonsense"},
    )
    route = {"prev": [], "curr": "data-loader", "next": ["recipe-generator", "llm-judge"]}
    ran.send("data-loader", sent(route=route, payload={"product_id": "123"}))
    assert ran.payloads("recipe-generator") == [DISH]
    assert ran.payloads("llm-judge") == [COOKED]
    assert ran.payloads("x-sink") == [COOKED | {"recipe_eval": "INVALID", "recipe_eval_details": "Recipe is nonsense"}]


# --- progress


@pytest.mark.parametrize(("done", "percent"), [(0, 33), (1, 66)])
def test_progress_counts_actors_that_are_done(done: int, percent: int) -> None:
    actors = ("prep", "infer", "post")
    route = Route(actors[:done], actors[done], actors[done + 1 :])
    assert progress_percent(route, "completed") == percent == int((done + 1) / 3 * 100)


def test_progress_of_a_run(pipeline: MakePipeline) -> None:
    ran = three(pipeline).send("prep", started())
    assert ran.percents("unique-message-id")[:3] == [10, 15, 33]
    assert ran.percents("unique-message-id")[-2:] == [99, 100]


def test_reports_go_to_two_queues(pipeline: MakePipeline) -> None:
    paths: list[str] = []
    ran = three(pipeline)
    ran.world.gateway.watch = lambda path, _: paths.append(path)
    ran.send("prep", started())
    assert set(paths) == {"asya-shop-x-reports", "asya-shop-x-ends"}
    first = [sent for sent in ran.world.gateway.events if sent.data.actor == "prep"]
    assert [sent.status for sent in first] == ["received", "processing", "completed"]


def test_pre_flight_stops_what_was_canceled(pipeline: MakePipeline) -> None:
    ran = three(pipeline, prep=lambda _: pytest.fail("the handler is not to be called"))
    ran.world.states["unique-message-id"] = TaskState(id="unique-message-id", status="canceled")
    ran.send("prep", started())
    ((actor, ended),) = ran.received
    assert actor == "x-sink"
    assert ended.status is not None
    assert ended.status.phase == "canceled"


def test_pre_flight_stops_a_late_copy_of_what_was_paused(pipeline: MakePipeline) -> None:
    """The frame of its first copy is in the pause, so nothing is sent for the late one."""
    ran = three(pipeline)
    paused = TaskState(id="unique-message-id", status="paused", pause_epoch=1)
    ran.world.states["unique-message-id"] = paused
    ran.send("prep", started())
    assert ran.received == []


def test_an_expired_sla_goes_to_x_sink(pipeline: MakePipeline) -> None:
    ran = three(pipeline).send("prep", started(deadline_at="2025-11-18T12:05:00Z"))
    ended = ran.at("x-sink")[0]
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("failed", "Timeout")
    assert json.loads(bytes(ended.payload)) == {"text": "Hello world"}


def test_the_end_is_persisted_then_reported_once(pipeline: MakePipeline) -> None:
    ran = three(pipeline).send("prep", started())
    assert ran.stored("succeeded/unique-message-id.json")["payload"] == {"text": "Hello world"}
    assert [sent.status for sent in ran.world.gateway.events].count("succeeded") == 1
    assert ran.task("unique-message-id").progress_percent == 100


def test_a_failure_is_reported_by_x_sink_with_its_error(pipeline: MakePipeline) -> None:
    ran = three(pipeline, infer=fails).send("prep", started())
    failure = next(sent for sent in ran.world.gateway.events if sent.status == "failed")
    assert failure.data.error is not None
    assert (failure.data.reason, failure.data.error.message) == ("RuntimeError", "Invalid input format")
    assert failure.data.route == Route(("prep",), "infer", ("post",))
    task = ran.task("unique-message-id")
    assert (task.status, task.progress_percent) == ("failed", 48)  # a failure keeps its last value
