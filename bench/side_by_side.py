"""Measuring several ways of doing a thing in turns, so that all of them meet the same weather."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Many short turns: what else the machine does meets each way equally often.
ROUNDS = 75
SECONDS_PER_TURN = 0.01


@dataclass(frozen=True)
class Measured:
    """Seconds of processor time that one call took, in each round."""

    turns: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.turns)

    def ratio(self, base: Measured) -> float:
        """How many times as long as the base: the median of the rounds, each compared with the base's turn beside its own."""
        return statistics.median(own / other for own, other in zip(self.turns, base.turns, strict=True))


def measure(ways: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Measured]:
    """Call each way over and over, in turns."""
    repeats = {name: _repeats(call) for name, call in ways.items()}
    turns: dict[str, list[float]] = {name: [] for name in ways}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in ways.items():
                turns[name].append(_turn(call, repeats[name]))
    finally:
        gc.enable()
    return {name: Measured(tuple(some)) for name, some in turns.items()}


def _repeats(call: Callable[[], object]) -> int:
    """How many calls fill a turn."""
    count = 1
    while (seconds := _turn(call, count) * count) < SECONDS_PER_TURN / 4:
        count *= 2
    return max(1, round(count * SECONDS_PER_TURN / seconds))


def _turn(call: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count
