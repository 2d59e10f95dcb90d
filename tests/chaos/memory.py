"""Judges whether memory is flat: in the second half of its life a process may not grow by more than a bound.

The first half is left out, because caches fill with work, not with time: a leak grows in both halves.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.chaos.processes import MemorySample

MIB = 1 << 20
WARM_UP_SECONDS = 60.0
"""The age at which clients and modules are loaded; the life that counts begins there."""
BOUND = 16 * MIB
SHARE = 0.15
"""Allowed in proportion to the memory in the middle of its life, if that is more than the bound."""
UNJUDGED = frozenset({"ministack", "this process"})
"""MiniStack keeps all messages, records and logs of the run in memory, and this process its readings."""
_WINDOW = 4
"""The samples of each of both medians."""


@dataclass(frozen=True)
class Growth:
    """The memory of one process in the middle of its life after the warm-up, and at the end of its life or of the run."""

    part: str
    function: str
    pid: int
    seconds: float
    """Between both."""
    first: float
    """Bytes."""
    last: float
    """Bytes."""

    @property
    def bytes(self) -> float:
        return self.last - self.first

    @property
    def is_flat(self) -> bool:
        return self.part in UNJUDGED or self.bytes <= max(BOUND, SHARE * self.first)


def growths(samples: Iterable[MemorySample]) -> list[Growth]:
    """The growth of each process that has lived long enough after its warm-up, the largest first."""
    processes: dict[tuple[str, str, int], list[MemorySample]] = defaultdict(list)
    for sample in samples:
        if sample.age >= WARM_UP_SECONDS and sample.at >= 0:
            processes[sample.part, sample.function, sample.pid].append(sample)
    result = [
        Growth(part, function, pid, own[-1].at - own[0].at, _median(own[:_WINDOW]), _median(own[-_WINDOW:]))
        for (part, function, pid), life in processes.items()
        if len(own := life[len(life) // 2 :]) >= 2 * _WINDOW
    ]
    return sorted(result, key=lambda each: -each.bytes)


def violations(growths: Sequence[Growth]) -> list[Violation]:
    """The processes that are not flat."""
    return [
        Violation(
            "memory grows",
            f"{each.function or each.part} (process {each.pid}) grew by {each.bytes / MIB:.0f} MiB "
            f"in {each.seconds:.0f} s, the second half of its life, from {each.first / MIB:.0f} MiB",
        )
        for each in growths
        if not each.is_flat
    ]


def _median(samples: Sequence[MemorySample]) -> float:
    return float(statistics.median(sample.bytes for sample in samples))
