"""Messages as an onlooker reads them: by the standard library and by what the protocol says, not by the mesh's own code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

REFERENCE = "x-asya-payload-ref"


@dataclass(frozen=True)
class ObservedEnvelope:
    """An envelope on a queue or in an object, its claim check redeemed.

    Attributes:
        has_reference: whether its payload lay elsewhere.
        trail: where its payload has been; None if it is none of ours.
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
        """See above."""
        found = self.payload.get("trail") if isinstance(self.payload, dict) else None
        return tuple(found) if isinstance(found, list) else None

    @property
    def phase(self) -> str | None:
        """The status's phase."""
        return self.status.get("phase")

    @property
    def generation(self) -> int:
        """Of the envelope."""
        found = self.headers.get("x-asya-generation")
        return found if isinstance(found, int) else 0

    @property
    def is_stealth(self) -> bool:
        """Whether nothing is reported about it."""
        return self.headers.get("x-asya-mesh-status") == "off"

    @property
    def attempt(self) -> int:
        """The attempt that its next start is, from 1."""
        return self.status.get("attempt", 1) if self.phase == "retrying" else 1


def read_envelope(body: str | bytes, objects: Mapping[str, bytes]) -> ObservedEnvelope | None:
    """An envelope; None for everything else."""
    try:
        found = json.loads(body)
        route = _present_route(found["route"])
        envelope = ObservedEnvelope(
            id=found["id"] if "id" in found else found["job_id"],
            parent_id=found.get("parent_id"),
            prev=tuple(route["prev"]),
            curr=route["curr"],
            next=tuple(route["next"]),
            headers=found.get("headers") or {},
            status=found.get("status") or {},
            payload=found["payload"],
        )
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(envelope.id, str) or not envelope.id:
        return None
    return _redeemed(envelope, objects)


def _present_route(route: Any) -> Any:
    """A route of an older shape in the present one (`protocol §14`)."""
    actors = route.get("actors", route.get("steps"))
    if actors is None or "prev" in route:
        return route
    current = route.get("current", 0)
    if not 0 <= current <= len(actors) or not actors:
        raise ValueError(f"there is no actor number {current}")
    here = actors[current] if current < len(actors) else ""
    return {"prev": actors[:current], "curr": here, "next": actors[current + 1 :]}


def _redeemed(envelope: ObservedEnvelope, objects: Mapping[str, bytes]) -> ObservedEnvelope:
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
