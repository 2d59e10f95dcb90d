"""protocol §5, end actors: the handler gets every envelope, and nothing is routed on."""

import json
from typing import Any

import pytest

from asya.ends.lambdas.wiring import build_end_actor, build_sink
from asya.protocol.codec import decode
from asya.runtime.load import LoadError
from tests.doubles.envelopes import message, status
from tests.doubles.large_payloads import LargePayloads, payload_key
from tests.doubles.light_actor import echo, run
from tests.doubles.mesh_world import MeshWorld, sqs_event

END: dict[str, Any] = {"kind": "end", "handler_mode": "envelope", "validate": False}


@pytest.mark.rule("1.end-actors-never-shift", "5.end-actors")
def test_5_an_end_actor_gets_every_envelope_and_routes_none(world: MeshWorld) -> None:
    seen: list[Any] = []

    def handler(envelope: Any) -> Any:
        seen.append(envelope)
        return {"ignored": {1, 2}}

    bodies = [
        message(),
        message(id="env-2", route={"prev": ["a"], "curr": "elsewhere", "next": []}),
        message(id="env-3", status=status(deadline_at="2020-01-01T00:00:00Z")),
        message(id="env-4", status=...),
    ]
    assert run(world, handler, *bodies, **END) == []
    assert [envelope["id"] for envelope in seen] == ["env-1", "env-2", "env-3", "env-4"]
    assert seen[0] == json.loads(message())
    assert world.targets == ["x-sink"] * 4
    assert (world.gateway.events, world.state_reads.asked) == ([], [])


@pytest.mark.rule("5.end-actors.sink")
def test_5_a_finished_envelope_goes_to_x_sink_as_received(world: MeshWorld) -> None:
    last = {"prev": ["prep"], "curr": "infer", "next": []}
    bodies = [
        message(route=last, status=status(error={"type": "ValueError", "message": "earlier"})),
        message(id="env-2", status=...),
        message(id="env-3", status=status(phase="failed", reason="RuntimeError")),
    ]
    assert run(world, echo, *bodies, **END) == []
    first, second, failed = (json.loads(sent.body) for sent in world.messages("x-sink"))
    assert (first["route"], first["payload"], first["headers"]) == (last, {"text": "hello"}, {"tenant": "acme"})
    ended = {"phase": "succeeded", "reason": "Completed", "actor": "infer"}
    for envelope in (first, second):
        assert {name: envelope["status"][name] for name in ended} == ended
        assert "error" not in envelope["status"]
    assert (failed["status"]["phase"], failed["status"]["reason"]) == ("failed", "RuntimeError")


@pytest.mark.rule("5.end-actors.sink")
def test_5_the_task_of_an_end_actor_ends(world: MeshWorld) -> None:
    assert run(world, echo, message(), **END) == []
    bodies = [sent.body for sent in world.messages("x-sink")]
    build_sink(world.services("x-sink")).process(sqs_event(*bodies))
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("5.end-actors.sink", "4.claim-check")
def test_5_a_large_payload_is_not_stored_again(world: MeshWorld) -> None:
    payloads = LargePayloads(size=100)
    world.s3 = payloads
    (body,) = payloads.messages(1)
    assert run(world, echo, body, **END) == []
    assert payloads.calls == [("get", payload_key(0))]
    (sent,) = world.sent("x-sink")
    assert sent.headers["x-asya-payload-ref"] == decode(body).headers["x-asya-payload-ref"]


@pytest.mark.rule("5.end-actors.failed")
def test_5_a_failed_end_actor_sends_the_envelope_to_x_sump(world: MeshWorld) -> None:
    def handler(envelope: Any) -> Any:
        if envelope["id"] == "env-2":
            raise SystemExit
        raise ValueError("no")

    assert run(world, handler, message(), message(id="env-2"), "junk", **END) == []
    reasons = [envelope.status.reason for envelope in world.sent("x-sump") if envelope.status]
    assert reasons == ["RuntimeError", "RuntimeCrash", "ParseError"]


@pytest.mark.rule("14.end-actor")
@pytest.mark.parametrize("wrong", [{"handler_mode": "payload"}, {"validate": True}])
def test_14_an_end_actor_needs_envelope_mode_and_no_validation(world: MeshWorld, wrong: dict[str, Any]) -> None:
    with pytest.raises(LoadError, match="end actor 'infer' needs handler_mode: envelope and validate: false"):
        build_end_actor(world.light(echo, **(END | wrong)))
