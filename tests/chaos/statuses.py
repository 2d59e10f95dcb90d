"""Statuses that were read during a chaos run, and whether they are monotone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.chaos.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RANKS = {"pending": 0, "running": 1, "paused": 1, "succeeded": 3, "failed": 3, "canceled": 3}
"""A pause and its resume may alternate, so both have one rank."""
TERMINAL = frozenset({"succeeded", "failed", "canceled"})


@dataclass(frozen=True)
class Sighting:
    """What was read about a task at one moment."""

    at: float
    """Seconds after the beginning of the load."""
    status: str
    generation: int = 0
    progress: int = 0
    """In percent; 0 where it was not read."""
    reason: str = ""
    provisional: bool = False
    """Whether another end may replace this one (protocol §13.provisional)."""

    def same(self, other: Sighting) -> bool:
        """Whether the other one says the same."""
        return replace(self, at=other.at) == other

    def may_become(self, later: Sighting) -> bool:
        """Whether a later reading of the task may say `later`: ranks and progress never fall, and an end stays."""
        if later.generation != self.generation:
            return later.generation > self.generation
        if self.status in TERMINAL:
            is_replaced = self.provisional and later.status in {*TERMINAL, "paused"}
            return is_replaced or later.status == self.status
        return RANKS.get(later.status, -1) >= RANKS.get(self.status, 4) and later.progress >= self.progress


def steps_back(sightings: Mapping[str, Sequence[Sighting]]) -> Iterator[Violation]:
    """The readings that no task may have one after the other, by task id."""
    for task_id, seen in sightings.items():
        for before, after in itertools.pairwise(seen):
            if not before.may_become(after):
                text = (
                    f"{task_id} was {before.status} {before.reason} ({before.progress} %) at {before.at:.0f} s "
                    f"and {after.status} {after.reason} ({after.progress} %) at {after.at:.0f} s"
                )
                yield Violation("status went back", text, task_id)
