"""The mesh under simulated storms: no schedule may violate an invariant, and a planted mistake must."""

from __future__ import annotations

import pytest

from tests.simulation.planted import PLANTED
from tests.simulation.planting import Planted
from tests.simulation.schedule import run

SCHEDULES = 200
AT_ONCE = 20
SEEDS_PER_MISTAKE = 40

# These show themselves in fewer than one schedule in a hundred: `python -m tests.simulation` runs enough of them, a test does not.
RARE = frozenset(
    {
        "does not put suspects last",
        "keeps suspects in the same order",
        "takes slices without claiming their end",
        "does not wake sets that wait",
        "does not report canceled children",
    }
)
COMMON = [mistake for mistake in PLANTED if mistake.name not in RARE]


@pytest.mark.parametrize("first", range(0, SCHEDULES, AT_ONCE))
def test_no_schedule_violates_an_invariant(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        outcome = run(seed)
        assert not outcome.violations, str(outcome)


@pytest.mark.parametrize("mistake", COMMON, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_found(mistake: Planted) -> None:
    with mistake.plant():
        assert any(run(seed).violations for seed in range(SEEDS_PER_MISTAKE))


def test_at_least_ten_mistakes_are_looked_for() -> None:
    assert len(COMMON) >= 10
    assert {mistake.name for mistake in PLANTED} >= RARE
