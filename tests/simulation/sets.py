"""What may become of a set of slices (`protocol §9`), told from outside: put together once, in order, of what arrived."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.protocol.mesh_table import FanIn, MeshTable
from tests.simulation.observed_envelope import ObservedEnvelope

HEADER = "x-asya-fan-in"
SET_FAILURES = ("SliceFailed", "FanInTimeout")


@dataclass
class SetRegistry:
    """Every set that a message has told of.

    Attributes:
        origins: slice 0 as it was sent to its fan-in actor, by set id. It may be sent more than once, the same each time.
        arrived: payloads that were sent to the fan-in actor, by set id and index; the first that is stored counts.
        left: the one envelope that left each set, as text.
    """

    mesh: MeshTable
    items: Mapping[tuple[str, str], Mapping[str, Any]]
    origins: dict[str, ObservedEnvelope] = field(default_factory=dict)
    arrived: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    def note(self, envelope: ObservedEnvelope, to: str) -> None:
        """A queue has taken an envelope."""
        header = slice_of(envelope)
        if header is None or to != header["actor"] or envelope.curr != to:
            return
        set_id, index = header["set_id"], header["slice_index"]
        if index == 0:
            self.origins.setdefault(set_id, envelope)
        self.arrived.setdefault(set_id, {}).setdefault(index, []).append(envelope.payload)

    def origin_of(self, envelope: ObservedEnvelope, at: str) -> list[str]:
        """The sets that an envelope may have left: those of its id at this fan-in actor."""
        return [
            set_id
            for set_id, origin in self.origins.items()
            if origin.id == envelope.id and origin.curr == at and _has_left(origin, envelope)
        ]

    def leaving(self, set_id: str, envelope: ObservedEnvelope, to: str, body: str) -> Iterator[str]:
        """What is wrong with an envelope that left a set."""
        origin = self.origins[set_id]
        first = self.left.setdefault(set_id, body)
        if first != body:
            yield f"set {set_id} was left by one envelope and then by another"
        if origin.status.get("deadline_at") != envelope.status.get("deadline_at"):
            yield "the deadline got lost in a set"
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
                yield "an origin that ended is not as it came"
            return
        if (envelope.prev, (envelope.curr, *envelope.next)) != ((*origin.prev, origin.curr), origin.next or ("",)):
            yield f"a merged envelope left {origin.prev}, {origin.curr}, {origin.next} as {envelope.prev}, {envelope.curr}, {envelope.next}"
        if to != (envelope.curr or "x-sink"):
            yield f"a merged envelope for {envelope.curr or 'x-sink'} was sent to {to}"
        yield from self._merged(set_id, origin, envelope)

    def _merged(self, set_id: str, origin: ObservedEnvelope, envelope: ObservedEnvelope) -> Iterator[str]:
        header = origin.headers[HEADER]
        key = header["aggregation_key"].removeprefix("/")
        if {name: value for name, value in envelope.payload.items() if name != key} != {
            name: value for name, value in origin.payload.items() if name != key
        }:
            yield "a merge changed more of the payload than it may"
        results = envelope.payload.get(key)
        if not isinstance(results, list) or len(results) != header["slice_count"] - 1:
            yield f"the merge of {header['slice_count']} slices gave {results!r}"
            return
        missing = 0
        for index, result in enumerate(results, start=1):
            if result is None:
                missing += 1
            elif result not in self.arrived.get(set_id, {}).get(index, []):
                yield f"slice {index} of set {set_id} never came as {result!r}"
        rule = self.mesh.actors[origin.curr].fan_in or FanIn()
        if missing and (rule.on_failure == "fail" or len(results) - missing < (rule.quorum or 0)):
            yield f"a merge without {missing} of {len(results)} slices, which the rule does not allow"

    def is_stored(self, envelope: ObservedEnvelope) -> bool:
        """Whether a slice is stored, or comes too late for its set."""
        header = slice_of(envelope)
        if header is None:
            return False
        known = self.items.get((header["set_id"], "set"), {})
        return (header["set_id"], f"slice#{header['slice_index']:06d}") in self.items or "delivered" in known

    def problems(self) -> Iterator[str]:
        """What is wrong at rest: a set whose origin is there has been finished."""
        for set_id, origin in self.origins.items():
            is_there = (set_id, "slice#000000") in self.items
            if is_there and "delivered" not in self.items.get((set_id, "set"), {}):
                yield f"set {set_id} of {origin.id} was never finished"


def slice_of(envelope: ObservedEnvelope) -> dict[str, Any] | None:
    """The envelope's slice header."""
    header = envelope.headers.get(HEADER)
    return header if isinstance(header, dict) else None


def read_set_message(body: str) -> tuple[str, str, int] | None:
    """The type, set and index of a message about a set; None for everything else."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("type") not in ("slice-ended", "set-due"):
        return None
    return found["type"], found["set_id"], found.get("slice_index", -1)


def _has_left(origin: ObservedEnvelope, envelope: ObservedEnvelope) -> bool:
    """Whether this can be how an origin left its set, rather than how it was kept from joining it."""
    if envelope.phase in ("pending", "succeeded"):
        return envelope.prev == (*origin.prev, origin.curr)
    return envelope.prev == origin.prev and envelope.headers.get(HEADER) == origin.headers[HEADER].get("outer")
