"""Reads the claims of ends, and checks that a provisional end gives way (`protocol §11`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.protocol import names
from tests.simulation.checks.observed_envelope import ObservedEnvelope

Item = Mapping[str, Any]


@dataclass
class EndRegistry:
    """The ends at x-sink and x-sump.

    Attributes:
        items: the items of the claims.
        acked: id, generation and phase of each end whose message x-sink or x-sump acknowledged.
        claimed_by: the function that wrote the claim of an envelope last.
    """

    items: Mapping[tuple[str, str], Item]
    acked: set[tuple[str, int, str]] = field(default_factory=set)
    claimed_by: dict[str, str] = field(default_factory=dict)

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

    def report_problems(self, report: Mapping[str, Any]) -> Iterator[str]:
        """Yield the violations of a report: a pause stands beside the claim before it is reported (`protocol §11`, noted)."""
        if report.get("status") != "paused":
            return
        pause = report.get("generation", 0), report.get("position", 0)
        if self.last_pause(report["id"]) < pause:
            yield f"the pause of {report['id']} at {pause[1]} was reported before it was noted beside the claim of its end"

    def claim_written(self, before: Item | None, after: Item, by: str) -> None:
        """Record who wrote a claim; the same item also holds the last pause."""
        if "phase" in after and (before is None or _end_in(before) != _end_in(after)):
            self.claimed_by[after["pk"]["S"]] = by

    def acknowledged(self, envelope: ObservedEnvelope) -> None:
        """Record an end whose message was acknowledged."""
        if envelope.phase in ("succeeded", "failed") and "x-asya-hook" not in envelope.headers:
            self.acked.add((envelope.id, envelope.generation, str(envelope.phase)))

    def problems(self) -> Iterator[str]:
        """Yield the ends of dead letters that hold although the envelope has ended since: all of them are provisional."""
        for envelope_id, generation, phase in sorted(self.acked):
            claim = self.claim(envelope_id)
            if claim is None or int(claim["generation"]["N"]) != generation:
                continue
            if self.claimed_by[envelope_id] == names.DLQ:
                yield f"{envelope_id} ended as {phase} at x-sink, but the provisional end of its dead letter still holds"


def _end_in(item: Item) -> tuple[Any, ...]:
    return tuple(item.get(name) for name in ("generation", "phase", "provisional"))
