"""A service is off for some time: nothing becomes a dead letter, and what misses its deadline says why (`protocol §4.outage`)."""

from __future__ import annotations

import pytest

from tests.simulation.faults import OUTAGE_SECONDS, SERVICES
from tests.simulation.inputs.features import Features
from tests.simulation.schedule import run

# Most of these meshes have sets.
SEEDS = (0, 5, 8, 13, 100)
HEAVY_SEEDS = (0,)
FEATURES: Features = frozenset({"pauses", "cancels", "ends", "deadlines", "waits"})


@pytest.mark.rule("4.outage", "4.outage.named")
@pytest.mark.parametrize("seconds", OUTAGE_SECONDS)
@pytest.mark.parametrize("service", SERVICES)
def test_nothing_fails_in_an_outage_but_by_its_own_deadline(service: str, seconds: float) -> None:
    schedules = [(seed, False) for seed in SEEDS] + [(seed, True) for seed in HEAVY_SEEDS]
    for seed, is_heavy in schedules:
        start = 1.0 + seed % 20
        outcome = run(
            seed,
            "fault-free",
            is_heavy=is_heavy,
            features=frozenset() if is_heavy else FEATURES,
            service_off=(service, start, start + seconds),
        )
        assert not outcome.violations, str(outcome)
        assert not outcome.cloud.ledger.dead_letters
