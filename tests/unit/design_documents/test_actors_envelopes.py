"""The examples of the first design document: legacy envelopes with `route.actors` (protocol §14).

docs/decisions/departures-from-legacy.md lists the departures from it.
"""

import json
from typing import Any

import pytest

from asya.capabilities.legacy.envelopes import read_envelope
from asya.protocol import names
from asya.protocol.envelope import Route, progress_percent
from tests.doubles.envelopes import message
from tests.unit.design_documents.conftest import MakePipeline

# Legacy handlers return arrays to fan out, and their children have numbered ids.
LEGACY = {"fan_out_lists": True, "options": {"child_ids": "suffix"}}

ENVELOPE = {
    "id": "unique-envelope-id",
    "parent_id": "original-envelope-id",
    "route": {"actors": ["prep", "infer", "post"], "current": 0},
    "headers": {"trace_id": "abc-123", "priority": "high"},
    "payload": {"text": "Hello world"},
}


def echo(payload: Any) -> Any:
    return payload


def sent(**changes: Any) -> dict[str, Any]:
    """The document's envelope, changed; `...` leaves a key out."""
    return {name: value for name, value in (ENVELOPE | changes).items() if value is not ...}


# --- the envelope


def test_the_envelope_is_read() -> None:
    envelope = read_envelope(json.dumps(ENVELOPE).encode())
    assert (envelope.id, envelope.parent_id) == ("unique-envelope-id", "original-envelope-id")
    assert envelope.route == Route((), "prep", ("infer", "post"))
    assert (envelope.header("trace_id"), envelope.header("priority")) == ("abc-123", "high")
    assert json.loads(bytes(envelope.payload)) == {"text": "Hello world"}


@pytest.mark.parametrize("missing", ["parent_id", "headers"])
def test_parent_id_and_headers_are_optional(missing: str) -> None:
    assert read_envelope(json.dumps(sent(**{missing: ...})).encode()).id == "unique-envelope-id"


@pytest.mark.parametrize("missing", ["id", "route", "payload"])
def test_id_route_and_payload_are_required(pipeline: MakePipeline, missing: str) -> None:
    (refused,) = pipeline(prep=echo).send("prep", sent(**{missing: ...})).at("x-sump")
    assert refused.status is not None
    assert refused.status.error is not None
    assert refused.status.reason == "ParseError"
    assert refused.status.error.message == f"Failed to parse message: {missing} is missing"


def test_current_is_an_index_counted_from_0_and_raised_by_the_runtime(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=echo, infer=echo, post=echo).send("prep", ENVELOPE)
    assert [(actor, envelope.route) for actor, envelope in ran.received] == [
        ("infer", Route(("prep",), "infer", ("post",))),
        ("post", Route(("prep", "infer"), "post", ())),
        ("x-sink", Route(("prep", "infer", "post"), "", ())),
    ]


# --- queues and ends


def test_every_queue_begins_with_asya() -> None:
    """Today the namespace stands in between; `arn:aws:sqs:*:*:asya-*` still is all of them."""
    assert names.queue_name("shop", "text-analyzer") == "asya-shop-text-analyzer"
    assert names.queue_name("shop", "image-processor") == "asya-shop-image-processor"


@pytest.mark.parametrize("end", ["happy-end", "error-end"])
def test_end_actors_do_not_stand_in_routes(pipeline: MakePipeline, end: str) -> None:
    ran = pipeline(prep=echo).send("prep", sent(route={"actors": ["prep", end], "current": 0}))
    (refused,) = ran.at("x-sump")
    assert refused.status is not None
    assert refused.status.reason == "RouteMismatch"


# --- responses


def test_a_single_response_goes_on_with_current_raised(pipeline: MakePipeline) -> None:
    answer = {"processed": True, "timestamp": "2025-11-18T12:00:00Z"}
    ran = pipeline(prep=lambda _: answer, infer=echo, post=echo).send("prep", ENVELOPE)
    assert ran.payloads("infer") == [answer]


def test_an_array_is_a_fan_out(pipeline: MakePipeline) -> None:
    chunks = [{"chunk": 1, "text": "Hello"}, {"chunk": 2, "text": "world"}]
    ran = pipeline(spec=LEGACY, split=lambda _: chunks, process=echo)
    ran.send("split", sent(route={"actors": ["split", "process"], "current": 0}))
    assert ran.payloads("process") == chunks


@pytest.mark.rule("14.child_ids")
def test_the_ids_of_a_fan_out(pipeline: MakePipeline) -> None:
    ran = pipeline(spec=LEGACY, split=lambda _: [1, 2, 3], process=echo)
    ran.send("split", sent(id="abc-123", parent_id=..., route={"actors": ["split", "process"], "current": 0}))
    assert [(envelope.id, envelope.parent_id) for envelope in ran.at("process")] == [
        ("abc-123", None),
        ("abc-123-1", "abc-123"),
        ("abc-123-2", "abc-123"),
    ]


@pytest.mark.rule("14.child_ids")
def test_fan_outs_of_fan_outs_never_share_an_id(pipeline: MakePipeline) -> None:
    ran = pipeline(spec=LEGACY, split=lambda _: [1, 2], again=lambda _: [1, 2], process=echo)
    ran.send("split", sent(id="abc-123", route={"actors": ["split", "again", "process"], "current": 0}))
    found = [envelope.id for envelope in ran.at("process")]
    assert len(set(found)) == 4
    assert {"abc-123", "abc-123-1", "abc-123-1-1"} < set(found)


@pytest.mark.parametrize("empty", [None, []])
def test_an_empty_response_ends_well_without_an_increment(pipeline: MakePipeline, empty: Any) -> None:
    ran = pipeline(spec=LEGACY, prep=lambda _: empty).send("prep", ENVELOPE)
    (ended,) = ran.at("x-sink")
    assert ended.route == Route((), "prep", ("infer", "post"))
    assert ended.status is not None
    assert ended.status.phase == "succeeded"
    assert json.loads(bytes(ended.payload)) == ENVELOPE["payload"]


def fails(_: Any) -> None:
    raise ValueError("Invalid input format")


def test_an_error_ends_without_an_increment(pipeline: MakePipeline) -> None:
    """What the runtime of that generation answered for a handler that raised is the error of the status block."""
    ran = pipeline(prep=fails).send("prep", ENVELOPE)
    for end in ("x-sink", "x-sump"):
        (ended,) = ran.at(end)
        assert ended.route == Route((), "prep", ("infer", "post"))
        assert ended.status is not None
        assert ended.status.error is not None
        assert (ended.status.phase, ended.status.error.message) == ("failed", "Invalid input format")


@pytest.mark.rule("6.error-like-dict")
def test_a_returned_error_object_is_a_payload(pipeline: MakePipeline) -> None:
    """A departure: only raising is failing."""
    answer = {"error": "processing_error", "message": "Invalid input format"}
    assert pipeline(prep=lambda _: answer, infer=echo, post=echo).send("prep", ENVELOPE).payloads("infer") == [answer]


@pytest.mark.rule("14.responses")
def test_a_returned_error_object_is_a_failure_where_the_actor_says_so(pipeline: MakePipeline) -> None:
    answer = {"error": "processing_error", "message": "Invalid input format"}
    (ended,) = (
        pipeline(spec={"options": {"responses": "errors"}}, prep=lambda _: answer).send("prep", ENVELOPE).at("x-sump")
    )
    assert ended.route == Route((), "prep", ("infer", "post"))
    assert ended.status is not None
    assert ended.status.error is not None
    assert (ended.status.error.type, ended.status.error.message) == tuple(answer.values())


def test_a_timeout_ends_in_error(pipeline: MakePipeline) -> None:
    def never(_: Any) -> None:
        while True:
            pass

    ran = pipeline(spec={"timeout": 0.1}, prep=never).send("prep", ENVELOPE)
    (ended,) = ran.at("x-sump")
    assert ended.status is not None
    assert ended.status.reason == "Timeout"


# --- payload enrichment

DISH = {"product_id": "123", "product_name": "Ice-cream Bourgignon"}
COOKED = DISH | {"recipe": "Cook ice-cream in tomato sauce for 3 hours"}
JUDGED = COOKED | {"recipe_eval": "INVALID", "recipe_eval_details": "Recipe is nonsense"}


def test_actors_add_to_the_payload(pipeline: MakePipeline) -> None:
    ran = pipeline(
        data_loader=lambda payload: payload | {"product_name": "Ice-cream Bourgignon"},
        recipe_generator=lambda payload: payload | {"recipe": COOKED["recipe"]},
        llm_judge=lambda payload: payload | {"recipe_eval": "INVALID", "recipe_eval_details": "Recipe is nonsense"},
    )
    route = {"actors": ["data-loader", "recipe-generator", "llm-judge"], "current": 0}
    ran.send("data-loader", sent(route=route, payload={"product_id": "123"}))
    assert ran.payloads("recipe-generator") == [DISH]
    assert ran.payloads("llm-judge") == [COOKED]
    assert ran.payloads("x-sink") == [JUDGED]


# --- statuses and progress


def test_statuses_along_a_route_that_ends_well(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=echo, infer=echo, post=echo).send("prep", ENVELOPE)
    assert ran.task("unique-envelope-id", reports=1).status == "running"
    assert ran.task("unique-envelope-id").status == "succeeded"


def test_statuses_of_one_that_fails(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=echo, infer=fails).send("prep", ENVELOPE)
    assert ran.task("unique-envelope-id").status == "failed"


def test_reports_are_made_at_three_points_of_each_actor(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=echo, infer=echo, post=echo).send("prep", ENVELOPE)
    assert ran.world.gateway.reported("unique-envelope-id") == [
        "registered",
        *["received", "processing", "completed"] * 3,
        "succeeded",
    ]


@pytest.mark.parametrize(
    ("done", "numbers"), [(0, (10, 15, 33)), (1, (43, 48, 66)), (2, (76, 81, 99))], ids=["prep", "infer", "post"]
)
def test_progress_numbers_of_three_actors(done: int, numbers: tuple[int, int, int]) -> None:
    actors = ("prep", "infer", "post")
    route = Route(actors[:done], actors[done], actors[done + 1 :])
    assert tuple(progress_percent(route, status) for status in ("received", "processing", "completed")) == numbers


def test_progress_of_a_run_ends_at_100(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=echo, infer=echo, post=echo).send("prep", ENVELOPE)
    assert ran.percents("unique-envelope-id") == [10, 15, 33, 43, 48, 66, 76, 81, 99, 100]


def test_the_final_report_has_the_result(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=lambda _: {"n": 1}).send("prep", sent(route={"actors": ["prep"], "current": 0}))
    (final,) = [event for event in ran.world.gateway.events if event.status == "succeeded"]
    assert json.loads(bytes(final.data.result)) == {"n": 1}  # type: ignore[arg-type]
    assert ran.stored("succeeded/unique-envelope-id.json")["payload"] == {"n": 1}


def test_the_final_report_has_the_error(pipeline: MakePipeline) -> None:
    ran = pipeline(prep=fails).send("prep", ENVELOPE)
    final = next(event for event in ran.world.gateway.events if event.status == "failed")
    assert final.data.error is not None
    assert final.data.error.message == "Invalid input format"


@pytest.mark.rule("14.both-shapes")
def test_both_shapes_in_one_envelope_mean_the_new_one() -> None:
    both = {"actors": ["prep"], "current": 0, "prev": ["prep"], "curr": "infer", "next": []}
    assert read_envelope(message(route=both)).route == Route(("prep",), "infer", ())


@pytest.mark.rule("14.routes")
@pytest.mark.parametrize(
    ("route", "problem"),
    [
        ({"actors": ["a"], "current": -1}, "route.current is -1; route.actors has 1 entries"),
        ({"actors": ["a"], "current": 2}, "route.current is 2; route.actors has 1 entries"),
        ({"actors": [], "current": 0}, "route.actors is empty"),
        ({"actors": ["a"], "current": "0"}, "route.current: Expected `int`, got `str`"),
        ({"actors": "a"}, "route.actors: Expected `array`, got `str`"),
    ],
)
def test_what_is_no_route_of_this_generation(pipeline: MakePipeline, route: Any, problem: str) -> None:
    (refused,) = pipeline(a=echo).send("a", sent(route=route)).at("x-sump")
    assert refused.id == "unique-envelope-id"
    assert refused.status is not None
    assert refused.status.error is not None
    assert refused.status.error.message == f"Failed to parse message: {problem}"


@pytest.mark.rule("14.routes")
def test_current_is_0_unless_said_otherwise_and_may_be_the_end() -> None:
    assert read_envelope(message(route={"actors": ["a", "b"]})).route == Route((), "a", ("b",))
    assert read_envelope(message(route={"actors": ["a", "b"], "current": 2})).route == Route(("a", "b"), "", ())
