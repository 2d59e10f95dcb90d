"""Measuring several ways of doing a thing in turns, so that all of them meet the same weather."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROUNDS = 15
SECONDS_PER_TURN = 0.05


@dataclass(frozen=True)
class Measured:
    """Median seconds of one call."""

    name: str
    seconds: float

    def ratio(self, base: Measured) -> float:
        """How many times as long as the base."""
        return self.seconds / base.seconds


def measure(ways: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Measured]:
    """Call each way over and over, in turns; the median of the rounds counts."""
    repeats = {name: _repeats(call) for name, call in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in ways.items():
                times[name].append(_turn(call, repeats[name]))
    finally:
        gc.enable()
    return {name: Measured(name, statistics.median(some)) for name, some in times.items()}


def _repeats(call: Callable[[], object]) -> int:
    """How many calls fill a turn."""
    count = 1
    while (seconds := _turn(call, count) * count) < SECONDS_PER_TURN / 4:
        count *= 2
    return max(1, round(count * SECONDS_PER_TURN / seconds))


def _turn(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
