"""The mesh's heavy actors under simulated storms: no schedule may violate an invariant, and a planted mistake must."""

from __future__ import annotations

import pytest

from tests.simulation.heavy.planted import PLANTED
from tests.simulation.planting import Planted
from tests.simulation.schedule import run, seed_that_finds

SCHEDULES = 60
AT_ONCE = 10


@pytest.mark.parametrize("first", range(0, SCHEDULES, AT_ONCE))
def test_no_heavy_schedule_violates_an_invariant(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        outcome = run(seed, is_heavy=True)
        assert not outcome.violations, str(outcome)


@pytest.mark.parametrize("mistake", PLANTED, ids=lambda mistake: mistake.name)
def test_a_mistake_on_the_heavy_path_is_found(mistake: Planted) -> None:
    seed = seed_that_finds(mistake, is_heavy=True)

    assert seed is not None, "no schedule shows it"
    assert not run(seed, mistake.kind, is_heavy=True).violations, "without the mistake it looks no better"
