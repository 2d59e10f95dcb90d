"""Measures several functions in turns, so that noise of the machine affects all of them equally."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Many short turns spread the noise evenly.
ROUNDS = 75
SECONDS_PER_TURN = 0.01


@dataclass(frozen=True)
class Measurement:
    """The CPU seconds of one call, in each round."""

    turns: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.turns)

    def ratio(self, base: Measurement) -> float:
        """Return the ratio to the base: the median over the rounds, each compared with the base in the same round."""
        return statistics.median(own / other for own, other in zip(self.turns, base.turns, strict=True))


def measure(candidates: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Measurement]:
    """Call each function repeatedly, in turns."""
    repeats = {name: _repeats(call) for name, call in candidates.items()}
    turns: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in candidates.items():
                turns[name].append(_turn(call, repeats[name]))
    finally:
        gc.enable()
    return {name: Measurement(tuple(seconds)) for name, seconds in turns.items()}


def _repeats(call: Callable[[], object]) -> int:
    """Return how many calls fill a turn."""
    count = 1
    while (seconds := _turn(call, count) * count) < SECONDS_PER_TURN / 4:
        count *= 2
    return max(1, round(count * SECONDS_PER_TURN / seconds))


def _turn(call: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count
