"""Anything that must not be after a chaos run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Violation:
    """Something that must not be."""

    kind: str
    text: str
    envelope_id: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def totals(violations: Sequence[Violation]) -> dict[str, int]:
    """Count violations by kind, the most frequent first."""
    return dict(Counter(each.kind for each in violations).most_common())
