"""Reads envelopes with the standard library and the protocol only, independent of the mesh's code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

REFERENCE = "x-asya-payload-ref"
# What leaves the crew has another key than what came, for the same task (`protocol §4.keys`).
_KEY = "x-asya-key"


@dataclass(frozen=True)
class ObservedEnvelope:
    """An envelope of a message or an object, with its claim check redeemed.

    Attributes:
        has_reference: whether the payload came from a claim check.
    """

    id: str
    parent_id: str | None
    prev: tuple[str, ...]
    curr: str
    next: tuple[str, ...]
    headers: Mapping[str, Any]
    status: Mapping[str, Any]
    payload: Any
    has_reference: bool = field(default=False, compare=False)

    @property
    def trail(self) -> tuple[str, ...] | None:
        """The handlers that made the payload (see `programs`); None for other payloads."""
        trail = self.payload.get("trail") if isinstance(self.payload, dict) else None
        return tuple(trail) if isinstance(trail, list) else None

    @property
    def phase(self) -> str | None:
        """The phase of the status."""
        return self.status.get("phase")

    @property
    def generation(self) -> int:
        """The generation; 0 before the first redrive."""
        generation = self.headers.get("x-asya-generation")
        return generation if isinstance(generation, int) else 0

    @property
    def is_stealth(self) -> bool:
        """Whether the mesh sends no reports about the envelope."""
        return self.headers.get("x-asya-mesh-status") == "off"

    @property
    def attempt(self) -> int:
        """The number of the attempt that starts next, from 1."""
        return self.status.get("attempt", 1) if self.phase == "retrying" else 1


def read_envelope(body: str | bytes, objects: Mapping[str, bytes]) -> ObservedEnvelope | None:
    """Read an envelope; None if the body is not an envelope."""
    try:
        content = json.loads(body)
        route = _current_route(content["route"])
        envelope = ObservedEnvelope(
            id=content["id"] if "id" in content else content["job_id"],
            parent_id=content.get("parent_id"),
            prev=tuple(route["prev"]),
            curr=route["curr"],
            next=tuple(route["next"]),
            headers={name: value for name, value in (content.get("headers") or {}).items() if name != _KEY},
            status=content.get("status") or {},
            payload=content["payload"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(envelope.id, str) or not envelope.id:
        return None
    return _redeem(envelope, objects)


def _current_route(route: Any) -> Any:
    """Upgrade a legacy route (`protocol §14`)."""
    actors = route.get("actors", route.get("steps"))
    if actors is None or "prev" in route:
        return route
    current = route.get("current", 0)
    if not 0 <= current <= len(actors) or not actors:
        raise ValueError(f"the route has no actor number {current}")
    here = actors[current] if current < len(actors) else ""
    return {"prev": actors[:current], "curr": here, "next": actors[current + 1 :]}


def _redeem(envelope: ObservedEnvelope, objects: Mapping[str, bytes]) -> ObservedEnvelope:
    reference = envelope.headers.get(REFERENCE)
    if not isinstance(reference, dict) or reference.get("key") not in objects:
        return envelope
    content = objects[reference["key"]]
    if sha256(content).hexdigest() != reference.get("sha256"):
        return envelope
    return ObservedEnvelope(
        id=envelope.id,
        parent_id=envelope.parent_id,
        prev=envelope.prev,
        curr=envelope.curr,
        next=envelope.next,
        headers={name: value for name, value in envelope.headers.items() if name != REFERENCE},
        status=envelope.status,
        payload=json.loads(content),
        has_reference=True,
    )


def target_of(envelope: ObservedEnvelope, actor: str) -> str:
    """Return the actor that replaces this one in the routes of an envelope (`protocol §3.route-override`)."""
    overrides = envelope.headers.get("x-asya-route-override")
    target = overrides.get(actor) if isinstance(overrides, dict) and actor else None
    return target if isinstance(target, str) else actor
