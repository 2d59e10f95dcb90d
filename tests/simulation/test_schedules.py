"""Schedules of light meshes: the mesh violates no invariant, and each planted mistake violates one."""

from __future__ import annotations

import pytest

from tests.simulation.mistake import Mistake
from tests.simulation.planted_table import LIGHT
from tests.simulation.schedule import find_seed, run, violations_without

SCHEDULES = 100
SEEDS_PER_CHUNK = 20


@pytest.mark.parametrize("first", range(0, SCHEDULES, SEEDS_PER_CHUNK))
def test_no_schedule_violates_an_invariant(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_CHUNK):
        outcome = run(seed)
        assert not outcome.violations, str(outcome)


@pytest.mark.parametrize("mistake", LIGHT, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_found(mistake: Mistake) -> None:
    seed = find_seed(mistake, is_heavy=False)

    assert seed is not None, "no schedule detects the mistake"
    assert not violations_without(seed, mistake.kind, is_heavy=False, features=mistake.features), (
        "the schedule fails without the mistake too"
    )
