"""The examples of the second design document: legacy messages with `route.steps` (protocol §14).

docs/decisions/departures-from-legacy.md lists the departures from it.
"""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from asya.capabilities.legacy.envelopes import read_envelope
from asya.function.hop import Diversion
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Route
from asya.sidecar import arrival, outcome
from tests.doubles.envelopes import NOW, arrival_of, hop, mesh, message
from tests.unit.design_documents.conftest import MakePipeline

LEGACY = {"fan_out_lists": True}
# The messages have no id, so the mesh derives one from the SQS message id.
MADE = ids.id_of_message("message-0")


def sent(steps: list[str], payload: Any, current: int = 0, **more: Any) -> dict[str, Any]:
    return {"route": {"steps": steps, "current": current}, "payload": payload, **more}


def fails(error: Exception) -> Any:
    def handler(_: Any) -> None:
        raise error

    return handler


# --- basic flow


def test_a_single_step(pipeline: MakePipeline) -> None:
    seen: list[Any] = []

    def process(payload: Any) -> Any:
        seen.append(payload)
        return {"result": "Processed"}

    ran = pipeline(process=process).send("process", sent(["process"], {"text": "Hello"}))
    assert seen == [{"text": "Hello"}]
    (ended,) = ran.at("x-sink")
    assert (ended.id, ended.route) == (MADE, Route(("process",), "", ()))
    assert ran.payloads("x-sink") == [{"result": "Processed"}]


def test_several_steps(pipeline: MakePipeline) -> None:
    ran = pipeline(
        preprocess=lambda _: {"tokens": [1, 2, 3]},
        inference=lambda _: {"prediction": "greeting"},
        postprocess=lambda _: {"output": "GREETING"},
    )
    ran.send("preprocess", sent(["preprocess", "inference", "postprocess"], {"text": "Hello"}))
    assert [(actor, len(envelope.route.prev)) for actor, envelope in ran.received] == [
        ("inference", 1),
        ("postprocess", 2),
        ("x-sink", 3),
    ]
    assert ran.payloads("inference") == [{"tokens": [1, 2, 3]}]
    assert ran.payloads("postprocess") == [{"prediction": "greeting"}]
    assert ran.payloads("x-sink") == [{"output": "GREETING"}]


# --- responses


def test_a_single_response(pipeline: MakePipeline) -> None:
    ran = pipeline(a=lambda _: {"processed": True}, b=lambda _: None).send("a", sent(["a", "b"], {}))
    assert ran.payloads("b") == [{"processed": True}]
    assert ran.at("b")[0].route == Route(("a",), "b", ())


@pytest.mark.rule("6.error-like-dict")
def test_the_runtimes_own_wrapping_is_a_payload_if_a_handler_gives_it(pipeline: MakePipeline) -> None:
    """A departure: `{"status": "ok", "result": …}` was spoken between runtime and sidecar, never by handlers."""
    wrapped = {"status": "ok", "result": {"processed": True}}
    ran = pipeline(a=lambda _: wrapped, b=lambda _: None).send("a", sent(["a", "b"], {}))
    assert ran.payloads("b") == [wrapped]


@pytest.mark.rule("14.responses")
@pytest.mark.parametrize(
    "result", [{"processed": True}, [{"chunk": 1, "text": "Hello"}, {"chunk": 2, "text": "world"}]]
)
def test_a_wrapped_result_is_unwrapped_where_the_actor_says_so(pipeline: MakePipeline, result: Any) -> None:
    wrapped = {"status": "ok", "result": result}
    ran = pipeline(spec=LEGACY | {"options": {"responses": "wrapped"}}, a=lambda _: wrapped, b=lambda _: None)
    ran.send("a", sent(["a", "b"], {}))
    assert ran.payloads("b") == (result if isinstance(result, list) else [result])


def test_an_array_becomes_several_messages(pipeline: MakePipeline) -> None:
    chunks = [{"chunk": 1, "text": "Hello"}, {"chunk": 2, "text": "world"}]
    ran = pipeline(spec=LEGACY, split=lambda _: chunks, process=lambda _: None)
    ran.send("split", sent(["split", "process"], "Hello world"))
    assert ran.payloads("process") == chunks
    assert [envelope.route for envelope in ran.at("process")] == [Route(("split",), "process", ())] * 2


@pytest.mark.parametrize("empty", [None, []])
def test_an_empty_response_ends_the_original_message_well(pipeline: MakePipeline, empty: Any) -> None:
    ran = pipeline(spec=LEGACY, a=lambda _: empty).send("a", sent(["a", "b"], {"text": "Hello"}))
    (ended,) = ran.at("x-sink")
    assert ended.route == Route((), "a", ("b",))
    assert ran.payloads("x-sink") == [{"text": "Hello"}]


def test_an_error_ends_with_the_original_payload_and_the_error(pipeline: MakePipeline) -> None:
    ran = pipeline(a=fails(ValueError("Missing required field: text"))).send("a", sent(["a", "b"], {"n": 1}))
    (ended,) = ran.at("x-sump")
    assert ended.route == Route((), "a", ("b",))
    assert json.loads(bytes(ended.payload)) == {"n": 1}
    assert ended.status is not None
    assert ended.status.error is not None
    assert ended.status.error.message == "Missing required field: text"
    assert ended.status.actor == "a"  # `error.step` of that generation


# --- what lies on the terminal queues


def test_a_message_of_happy_end_is_a_success_at_x_sink(pipeline: MakePipeline) -> None:
    ran = pipeline().send("x-sink", sent(["step1", "step2"], {"final": True}, current=2))
    stored = ran.stored(f"succeeded/{MADE}.json")
    assert stored["route"] == {"prev": ["step1", "step2"], "curr": "", "next": []}
    assert stored["payload"] == {"final": True}


def test_a_message_of_error_end_is_a_failure_at_x_sump(pipeline: MakePipeline) -> None:
    error = {"type": "runtime_error", "message": "Processing failed", "step": "step1"}
    ran = pipeline().send("x-sump", sent(["step1", "step2"], {"n": 1}, error=error))
    stored = ran.stored(f"sump/{MADE}.json")
    assert stored["route"] == {"prev": [], "curr": "step1", "next": ["step2"]}
    assert stored["error"] == error  # keys that nobody knows are carried along
    assert stored["status"]["phase"] == "failed"


# --- errors


def test_a_timeout_has_the_same_words() -> None:
    ended = outcome.timed_out(hop(message()), timedelta(minutes=5), by_deadline=False, now=NOW, jitter=0)
    assert ended.actor == "x-sump"
    envelope = decode(ended.body)
    assert envelope.status is not None
    assert envelope.status.error is not None
    assert envelope.status.error.message == "Runtime did not respond within 5m0s"
    assert envelope.status.error.type == "Timeout"
    assert json.loads(bytes(envelope.payload)) == {"text": "hello"}


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"route": {"steps": []}, "payload": 1}', b'{"payload": 1}'])
def test_what_cannot_be_parsed_ends_in_error_with_its_bytes(body: bytes) -> None:
    refused = arrival.receive(arrival_of(body), actor="infer", mesh=mesh(), now=NOW)
    assert isinstance(refused, Diversion)
    (delivery,) = refused.deliveries
    envelope = decode(delivery.body)
    assert (delivery.actor, envelope.route) == ("x-sump", Route((), "x-sump", ()))
    payload = json.loads(bytes(envelope.payload))
    original = payload["original_message"]
    assert (base64.b64decode(original) if payload["encoding"] == "base64" else original.encode()) == body
    assert payload["error"].startswith("Failed to parse message: ")


class InferenceException(Exception):  # noqa: N818 - the document's name
    """What a model raised."""


def test_an_error_of_the_runtime_tells_type_and_message(pipeline: MakePipeline) -> None:
    ran = pipeline(a=fails(InferenceException("Model inference failed"))).send("a", sent(["a"], {"n": 1}))
    (ended,) = ran.at("x-sump")
    assert ended.status is not None
    assert ended.status.error is not None
    assert ended.status.error.type.endswith(".InferenceException")
    assert ended.status.error.message == "Model inference failed"


# --- the complete example


def test_three_steps_with_a_fan_out(pipeline: MakePipeline) -> None:
    ran = pipeline(
        spec=LEGACY,
        tokenize=lambda payload: [{"token": word, "id": n} for n, word in enumerate(payload["text"].split(), start=1)],
        process_tokens=lambda payload: {"processed": payload["token"].upper(), "id": payload["id"]},
        aggregate=lambda payload: {"final": payload["processed"]},
    )
    ran.send("tokenize", sent(["tokenize", "process-tokens", "aggregate"], {"text": "Hello world"}))
    assert ran.payloads("process-tokens") == [{"token": "Hello", "id": 1}, {"token": "world", "id": 2}]
    assert ran.payloads("aggregate") == [{"processed": "HELLO", "id": 1}, {"processed": "WORLD", "id": 2}]
    assert ran.payloads("x-sink") == [{"final": "HELLO"}, {"final": "WORLD"}]
    assert {envelope.route for envelope in ran.at("x-sink")} == {
        Route(("tokenize", "process-tokens", "aggregate"), "", ())
    }


# --- the gateway's message


@pytest.mark.rule("14.missing-id")
def test_job_id_is_the_id(pipeline: MakePipeline) -> None:
    job = sent(["step1", "step2"], {"input": "user data"}, job_id="550e8400-e29b-41d4-a716-446655440000")
    ran = pipeline(step1=lambda payload: payload, step2=lambda payload: payload).send("step1", job)
    (ended,) = ran.at("x-sink")
    assert ended.id == "550e8400-e29b-41d4-a716-446655440000"
    assert ran.task(ended.id, reports=1).status == "running"
    assert ran.task(ended.id).status == "succeeded"


@pytest.mark.rule("14.missing-id")
def test_only_a_steps_envelope_may_lack_an_id(pipeline: MakePipeline) -> None:
    for route in ({"actors": ["a"], "current": 0}, {"prev": [], "curr": "a", "next": []}):
        ran = pipeline(a=lambda payload: payload).send("a", {"route": route, "payload": 1, "job_id": "j"})
        (refused,) = ran.at("x-sump")
        assert refused.status is not None
        assert refused.status.error is not None
        assert refused.status.error.message == "Failed to parse message: id is missing"
        ran.world.sqs.sent.clear()


def test_an_id_of_its_own_comes_before_the_job_id() -> None:
    assert read_envelope(json.dumps(sent(["a"], 1, id="own", job_id="job")).encode()).id == "own"


@pytest.mark.parametrize(("job_id", "problem"), [("", "job_id is empty"), (7, "job_id must be a string, not a number")])
def test_a_job_id_has_to_be_one(pipeline: MakePipeline, job_id: Any, problem: str) -> None:
    (refused,) = pipeline(a=lambda payload: payload).send("a", sent(["a"], 1, job_id=job_id)).at("x-sump")
    assert refused.status is not None
    assert refused.status.error is not None
    assert refused.status.error.message == f"Failed to parse message: {problem}"
