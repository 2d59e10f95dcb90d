"""The examples of the page on the envelope as the whole state of a pipeline."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Route
from tests.unit.design_documents.conftest import MakePipeline

ENVELOPE = {
    "id": "env-abc123",
    "route": {"prev": ["preprocess"], "curr": "infer", "next": ["postprocess", "store"]},
    "headers": {"trace_id": "t-42"},
    "payload": {"text": "Hello world", "cleaned": True},
}


def echo(payload: Any) -> Any:
    return payload


def process(state: dict[str, Any]) -> dict[str, Any]:
    """The document's handler: it sees the payload and nothing else."""
    state["prediction"] = f"greeting: {state['text']}"
    return state


@pytest.mark.rule("1.route.curr")
def test_the_envelope_says_where_it_was_is_and_will_be() -> None:
    envelope = decode(json.dumps(ENVELOPE).encode())
    assert envelope.route == Route(("preprocess",), "infer", ("postprocess", "store"))
    assert envelope.route.position == 1
    assert json.loads(encode(envelope)) == ENVELOPE


def test_the_route_advances_by_one_with_each_actor(pipeline: MakePipeline) -> None:
    ran = pipeline(infer=process, postprocess=echo, store=echo).send("infer", ENVELOPE)
    assert [(actor, envelope.route) for actor, envelope in ran.received] == [
        ("postprocess", Route(("preprocess", "infer"), "postprocess", ("store",))),
        ("store", Route(("preprocess", "infer", "postprocess"), "store", ())),
        ("x-sink", Route(("preprocess", "infer", "postprocess", "store"), "", ())),
    ]


def test_the_actor_never_sees_the_envelope(pipeline: MakePipeline) -> None:
    seen: list[Any] = []

    def infer(payload: Any) -> Any:
        seen.append(dict(payload))
        return process(payload)

    ran = pipeline(infer=infer, postprocess=echo, store=echo).send("infer", ENVELOPE)
    assert seen == [{"text": "Hello world", "cleaned": True}]
    assert ran.payloads("postprocess") == [
        {"text": "Hello world", "cleaned": True, "prediction": "greeting: Hello world"}
    ]
    assert ran.at("postprocess")[0].header("trace_id") == "t-42"


@pytest.mark.rule("1.state-in-envelope")
def test_the_same_handler_serves_any_route(pipeline: MakePipeline) -> None:
    for route in (["infer", "store"], ["infer", "judge", "human-review"]):
        ran = pipeline(infer=process, store=echo, judge=echo, human_review=echo)
        ran.send("infer", ENVELOPE | {"id": route[-1], "route": {"prev": [], "curr": route[0], "next": route[1:]}})
        (ended,) = ran.at("x-sink")
        assert ended.route.prev == tuple(route)
        ran.world.sqs.sent.clear()


@pytest.mark.rule("1.state-in-envelope")
def test_an_envelope_can_be_put_into_any_queue_to_go_on_from_there(pipeline: MakePipeline) -> None:
    first = pipeline(infer=process, postprocess=echo, store=echo).send("infer", ENVELOPE)
    (there,) = first.at("store")
    first.world.sqs.sent.clear()
    again = pipeline(store=lambda payload: payload | {"stored": True}).send("store", encode(there))
    (stored,) = again.payloads("x-sink")
    assert stored == {"text": "Hello world", "cleaned": True, "prediction": "greeting: Hello world", "stored": True}


@pytest.mark.rule("1.route.next")
def test_actors_can_rewrite_what_is_ahead(pipeline: MakePipeline) -> None:
    def router(payload: Any) -> Iterator[Any]:
        yield "SET", ".route.next", ["judge"]
        yield payload

    ran = pipeline(infer=router, judge=echo, postprocess=echo, store=echo).send("infer", ENVELOPE)
    assert [actor for actor, _ in ran.received] == ["judge", "x-sink"]
