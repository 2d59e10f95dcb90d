"""Checks sets (`protocol §9`): each is merged once, in order, from slices that arrived."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from asya.protocol.mesh_table import FanIn, MeshTable
from tests.simulation.checks.observed_envelope import ObservedEnvelope, target_of

HEADER = "x-asya-fan-in"
SET_FAILURES = ("SliceFailed", "FanInTimeout")


@dataclass
class SetRegistry:
    """Records the slices of all sets.

    Attributes:
        items: the items of the fan-in table.
        origins: set id → slice 0, as first sent to its fan-in actor.
        arrivals: set id → slice index → the payloads sent to the fan-in actor; the first stored one counts.
        departures: set id → the body of the envelope that left the set.
    """

    mesh: MeshTable
    items: Mapping[tuple[str, str], Mapping[str, Any]]
    origins: dict[str, ObservedEnvelope] = field(default_factory=dict)
    arrivals: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    departures: dict[str, str] = field(default_factory=dict)

    def record(self, envelope: ObservedEnvelope, to: str) -> None:
        """Record a slice that a queue accepted."""
        header = slice_of(envelope)
        if header is None or to != header["actor"] or envelope.curr != to:
            return
        set_id, index = header["set_id"], header["slice_index"]
        if index == 0:
            self.origins.setdefault(set_id, envelope)
        self.arrivals.setdefault(set_id, {}).setdefault(index, []).append(envelope.payload)

    def candidates(self, envelope: ObservedEnvelope, at: str) -> list[str]:
        """Return the ids of the sets that an envelope may have left at this fan-in actor, each generation has its own."""
        return [
            set_id
            for set_id, origin in self.origins.items()
            if (origin.id, origin.generation) == (envelope.id, envelope.generation)
            and origin.curr == at
            and _may_have_left(origin, envelope)
        ]

    def leave_problems(self, set_id: str, envelope: ObservedEnvelope, to: str, body: str) -> Iterator[str]:
        """Yield the violations of an envelope that left a set."""
        origin = self.origins[set_id]
        first = self.departures.setdefault(set_id, body)
        if first != body:
            yield f"two different envelopes left set {set_id}"
        if origin.status.get("deadline_at") != envelope.status.get("deadline_at"):
            yield "the set lost the deadline"
        outer = origin.headers[HEADER].get("outer")
        if envelope.headers.get(HEADER) != outer:
            yield f"the enclosing set's header was {outer} and is {envelope.headers.get(HEADER)}"
        if envelope.status.get("reason") in SET_FAILURES or envelope.phase in ("failed", "canceled"):
            if (envelope.prev, envelope.curr, envelope.next, envelope.payload) != (
                origin.prev,
                origin.curr,
                origin.next,
                origin.payload,
            ):
                yield "the route or payload of an ended origin changed"
            return
        if (envelope.prev, (envelope.curr, *envelope.next)) != ((*origin.prev, origin.curr), origin.next or ("",)):
            before = f"{origin.prev}, {origin.curr}, {origin.next}"
            yield f"a merged envelope left {before} as {envelope.prev}, {envelope.curr}, {envelope.next}"
        if to != (target_of(envelope, envelope.curr) or "x-sink"):
            yield f"a merged envelope for {envelope.curr or 'x-sink'} was sent to {to}"
        yield from self._merge_problems(set_id, origin, envelope)

    def _merge_problems(self, set_id: str, origin: ObservedEnvelope, envelope: ObservedEnvelope) -> Iterator[str]:
        header = origin.headers[HEADER]
        key = header["aggregation_key"].removeprefix("/")
        if {name: value for name, value in envelope.payload.items() if name != key} != {
            name: value for name, value in origin.payload.items() if name != key
        }:
            yield "a merge changed other fields of the payload"
        results = envelope.payload.get(key)
        if not isinstance(results, list) or len(results) != header["slice_count"] - 1:
            yield f"the merge of {header['slice_count']} slices gave {results!r}"
            return
        missing = 0
        for index, result in enumerate(results, start=1):
            if result is None:
                missing += 1
            elif result not in self.arrivals.get(set_id, {}).get(index, []):
                yield f"slice {index} of set {set_id} never arrived as {result!r}"
        rule = self.mesh.actors[origin.curr].fan_in or FanIn()
        if missing and (rule.on_failure == "fail" or len(results) - missing < (rule.quorum or 0)):
            yield f"a merge without {missing} of {len(results)} slices violates on_failure or quorum"

    def is_stored(self, envelope: ObservedEnvelope) -> bool:
        """Whether a slice is stored, or late for its set."""
        header = slice_of(envelope)
        if header is None:
            return False
        item = self.items.get((header["set_id"], "set"), {})
        return (header["set_id"], f"slice#{header['slice_index']:06d}") in self.items or "delivered" in item

    def count_problems(self, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Iterator[str]:
        """Yield the violations of a write of a set, such as slices that it counts and that are not stored (`protocol §9.count`)."""
        set_id = after["pk"]["S"]
        for index in sorted(_arrived(after) - _arrived(before or {})):
            if (set_id, f"slice#{index:06d}") not in self.items:
                yield f"set {set_id} counts slice {index}, which is not stored"
        yield from self._expiry_problems(after)

    def _expiry_problems(self, item: Mapping[str, Any]) -> Iterator[str]:
        """Yield the problem of a set that may expire before its timeout and its `ttl` are over (`protocol §9.expiry`)."""
        rule = self.mesh.actors[item["actor"]["S"]].fan_in or FanIn()
        due = datetime.fromisoformat(item["due_at"]["S"]).timestamp()
        if "delivered" not in item and int(item["expires_at"]["N"]) < int(due + rule.ttl):
            early = due + rule.ttl - int(item["expires_at"]["N"])
            yield f"set {item['pk']['S']} expires {early:.0f} s before its timeout and its ttl are over"

    def problems(self) -> Iterator[str]:
        """Yield the sets with an origin that never ended."""
        for set_id, origin in self.origins.items():
            has_origin = (set_id, "slice#000000") in self.items
            if has_origin and "delivered" not in self.items.get((set_id, "set"), {}):
                yield f"set {set_id} of {origin.id} never ended"


def slice_of(envelope: ObservedEnvelope) -> dict[str, Any] | None:
    """Return the slice header of an envelope."""
    header = envelope.headers.get(HEADER)
    return header if isinstance(header, dict) else None


def read_set_message(body: str) -> tuple[str, str, int] | None:
    """Read the type, set id and slice index of a message about a set; None for other messages."""
    try:
        message = json.loads(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.get("type") not in ("slice-ended", "set-due"):
        return None
    return message["type"], message["set_id"], message.get("slice_index", -1)


def _arrived(item: Mapping[str, Any]) -> frozenset[int]:
    """Return the indexes of the slices that a set's item counts."""
    return frozenset(map(int, item["arrived"]["NS"])) if "arrived" in item else frozenset()


def _may_have_left(origin: ObservedEnvelope, envelope: ObservedEnvelope) -> bool:
    """Whether an envelope can be an origin that left its set, not one that ended before it joined."""
    if envelope.phase in ("pending", "succeeded"):
        return envelope.prev == (*origin.prev, origin.curr)
    return envelope.prev == origin.prev and envelope.headers.get(HEADER) == origin.headers[HEADER].get("outer")
