"""Reads the claims of ends, and checks that a provisional end gives way (`protocol §11`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.checks.observed_envelope import ObservedEnvelope

Item = Mapping[str, Any]


@dataclass
class EndRegistry:
    """The ends at x-sink and x-sump.

    Attributes:
        items: the items of the claims.
        acked: id, generation and phase of each end whose message x-sink or x-sump acknowledged.
    """

    items: Mapping[tuple[str, str], Item]
    acked: set[tuple[str, int, str]] = field(default_factory=set)

    def claim(self, envelope_id: str) -> Item | None:
        """Return the claim of an end; None if there is none, also if the item only holds a pause."""
        item = self.items.get((envelope_id, "claim"))
        return item if item is not None and "phase" in item else None

    def last_pause(self, envelope_id: str) -> tuple[int, int]:
        """Generation and position of the last pause that the item notes; below every position without one."""
        item = self.items.get((envelope_id, "claim"), {})
        return (
            (int(item["pause_generation"]["N"]), int(item["pause_epoch"]["N"])) if "pause_epoch" in item else (-1, -1)
        )

    def is_stale(self, envelope: ObservedEnvelope) -> bool:
        """Whether an end at this position does not count any more, because of a pause at or above it."""
        return (envelope.generation, len(envelope.prev)) <= self.last_pause(envelope.id)

    def acknowledged(self, envelope: ObservedEnvelope) -> None:
        """Record an end whose message was acknowledged."""
        if envelope.phase in ("succeeded", "failed") and "x-asya-hook" not in envelope.headers:
            self.acked.add((envelope.id, envelope.generation, str(envelope.phase)))

    def problems(self) -> Iterator[str]:
        """Yield the provisional ends that hold although the envelope has ended since."""
        for envelope_id, generation, phase in sorted(self.acked):
            claim = self.claim(envelope_id)
            if claim is None or int(claim["generation"]["N"]) != generation:
                continue
            if "provisional" in claim and claim["provisional"]["BOOL"]:
                yield f"{envelope_id} ended as {phase} at x-sink, but the provisional end of its dead letter still holds"
