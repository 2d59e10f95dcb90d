"""protocol §5, end actors: the handler gets every envelope, and nothing is routed on."""

import json
from typing import Any

import pytest

from asya.crew.lambdas.wiring import build_end_actor
from asya.runtime.load import LoadError
from tests.doubles.envelopes import message, status
from tests.doubles.light_actor import echo, run
from tests.doubles.mesh_world import MeshWorld

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
    assert world.targets == []
    assert (world.gateway.events, world.gateway.queries) == ([], [])


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
