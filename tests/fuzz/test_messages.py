"""Any message on any queue is acknowledged, causes something, and leaves the other messages of its batch alone."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.mesh_world import batch_failures
from tests.fuzz.edges import Edges, edges
from tests.fuzz.mutations import mutated_text
from tests.fuzz.sizes import examples

ACTORS = (
    "infer",
    "generate",
    "crunch",
    "archive",
    "approve",
    "x-resume",
    "x-checkpoint",
    "x-fan-in",
    "x-sink",
    "x-sump",
)
SLICE = {
    "actor": "x-fan-in",
    "set_id": "0db8e893-7132-4994-9213-65ef2b9c17cc",
    "origin_id": "order-7",
    "slice_index": 1,
    "slice_count": 4,
    "aggregation_key": "/by_airport",
}
PAUSE = {
    "epoch": 1,
    "paused_at": "2026-11-20T11:59:30.000000Z",
    "prompt": "Publish it?",
    "fields": [{"name": "approved", "type": "boolean"}],
    "remaining": 295.5,
}
HEADERS: dict[str, Any] = {
    "tenant": "acme",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "x-asya-root": "root-1",
    "x-asya-generation": 2,
    "x-asya-first-attempt": "2026-11-20T11:59:30.000000Z",
    "x-asya-not-before": "2026-11-20T11:59:30.000000Z",
    "x-asya-route-override": {"post": "rescue"},
    "x-asya-replay-of": "order-6",
    "x-asya-tool": "order",
    "x-asya-resume-input": {"approved": True},
    "x-asya-resume-at": "2026-11-20T11:59:30.000000Z",
}
CONTROL = (
    {"type": "slice-ended", **{key: SLICE[key] for key in ("set_id", "slice_index", "slice_count")}, "phase": "failed"},
    {"type": "set-due", "set_id": SLICE["set_id"], "until": 1763476245.0},
)


def envelope(actor: str, **headers: Any) -> dict[str, Any]:
    """An envelope at an actor, with every managed header that may stand beside the given ones."""
    return {
        "id": "order-7",
        "parent_id": "order-1",
        "route": {"prev": ["prep"], "curr": actor, "next": ["post"]},
        "headers": HEADERS | headers,
        "status": {
            "phase": "pending",
            "actor": actor,
            "attempt": 1,
            "max_attempts": 2,
            "created_at": "2026-11-20T11:59:00.000000Z",
            "updated_at": "2026-11-20T11:59:30.000000Z",
            "deadline_at": "2126-11-20T11:59:30.000000Z",
            "error": {"type": "ValueError", "message": "no", "mro": ["Exception"], "traceback": ""},
        },
        "payload": {"airport": "EWR", "rows": [1, 2.5, None]},
    }


def valid_messages(actor: str) -> tuple[dict[str, Any], ...]:
    """Valid messages of an actor's queue, of every form that it may hold."""
    reference = {"key": f"payloads/4e/{'4e' * 32}.json", "size": 12, "sha256": "4e" * 32}
    legacy = {"id": "order-7", "route": {"actors": ["prep", actor, "post"], "current": 1}, "payload": {}}
    forms = (
        envelope(actor),
        {"id": "raw-1", "route": {"prev": [], "curr": actor, "next": []}, "payload": None},
        envelope(actor, **{"x-asya-fan-in": SLICE | {"outer": SLICE}}),
        envelope(actor, **{"x-asya-pause": PAUSE}),
        envelope(actor, **{"x-asya-payload-ref": reference, "x-asya-mesh-status": "off"}) | {"payload": None},
        legacy,
    )
    return (*forms, *CONTROL) if actor == "x-fan-in" else forms


@pytest.fixture(scope="module")
def mesh() -> Iterator[Edges]:
    with edges() as functions:
        yield functions


@pytest.mark.rule("4.bad-input-is-acked", "5.1")
@pytest.mark.parametrize("actor", ACTORS)
@given(data=st.data())
@examples(15, 400)
def test_any_message_is_acknowledged_and_accounted_for(mesh: Edges, actor: str, data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(valid_messages(actor)).flatmap(mutated_text))
    neighbour = json.dumps(envelope(actor) | {"id": "neighbour"})
    assert batch_failures(mesh.process(actor, body)) == []
    mesh.check_messages()
    if not _is_late_control_message(body):
        assert not mesh.is_empty
    assert batch_failures(mesh.process(actor, body, neighbour)) == []
    mesh.check_messages()


def _is_late_control_message(body: str) -> bool:
    """Whether a message is about a set that nobody has heard of: it changes nothing."""
    try:
        return isinstance(value := json.loads(body), dict) and value.get("type") in ("slice-ended", "set-due")
    except (ValueError, RecursionError):
        return False
