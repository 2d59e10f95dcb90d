"""Envelopes, a mesh and hops for tests."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from asya.function.hop import Arrival, Diversion, Hop
from asya.protocol.mesh_table import Actor, MeshTable
from asya.sidecar import arrival as arrivals

NOW = datetime(2026, 11, 20, 12, 0, 0, 250_000, tzinfo=UTC)
SENT_AT = datetime(2026, 11, 20, 11, 59, 59, tzinfo=UTC)
SPAN = "00000000000000aa"


def raw(value: Any) -> msgspec.Raw:
    """A value as JSON text."""
    return msgspec.Raw(msgspec.json.encode(value))


def message(**members: Any) -> bytes:
    """The JSON of an envelope at `infer`, between `prep` and `post`; `...` as a value leaves its key out."""
    known: dict[str, Any] = {
        "id": "env-1",
        "route": {"prev": ["prep"], "curr": "infer", "next": ["post"]},
        "headers": {"tenant": "acme"},
        "status": {
            "phase": "pending",
            "actor": "infer",
            "attempt": 1,
            "max_attempts": 1,
            "created_at": "2026-11-20T11:59:00.000000Z",
            "updated_at": "2026-11-20T11:59:30.000000Z",
        },
        "payload": {"text": "hello"},
    }
    return msgspec.json.encode({name: value for name, value in (known | members).items() if value is not ...})


def status(**changes: Any) -> dict[str, Any]:
    """The status of `message()` with changes."""
    known: dict[str, Any] = msgspec.json.decode(message())["status"]
    return known | changes


def mesh(actors: Mapping[str, Actor] | None = None, **more: Any) -> MeshTable:
    """A mesh of prep, infer, post, rescue and the crew."""
    known = {name: Actor(kind="handler", handler=f"handlers.{name}") for name in ("prep", "infer", "post", "rescue")}
    crew = {name: Actor(kind="crew") for name in ("x-sink", "x-sump")}
    return MeshTable(namespace="shop", actors=known | crew | dict(actors or {}), **more)


def arrival_of(body: bytes, *, message_id: str = "0b5e7c1a-4b1f-4d7e-9a53-0a1f5b7c9d11", **more: Any) -> Arrival:
    """An SQS message as received."""
    return Arrival(body=body, message_id=message_id, sent_at=SENT_AT, size=len(body), **more)


def hop(
    body: bytes | None = None, *, actor: str = "infer", spec: Actor | None = None, now: datetime = NOW, **more: Any
) -> Hop:
    """A started hop."""
    table = mesh({actor: spec} if spec else None, **more)
    received = arrivals.receive(arrival_of(body or message()), actor=actor, mesh=table, now=now)
    assert not isinstance(received, Diversion), received
    started = arrivals.start(received, None, now=now, new_span=lambda: SPAN)
    assert not isinstance(started, Diversion), started
    return started
