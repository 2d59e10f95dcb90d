"""Schedules of heavy meshes: the mesh violates no invariant, and each planted mistake violates one."""

from __future__ import annotations

import msgspec
import pytest

from asya.protocol import states
from asya.protocol.job_runs import Closed
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake
from tests.simulation.planted_table import HEAVY
from tests.simulation.schedule import find_seed, run, violations_without

SCHEDULES = 100
SEEDS_PER_CHUNK = 10
CLOSED = msgspec.json.encode(Closed(states.CANCELED))
LINGERING: Features = frozenset({"lingers", "cancels", "deadlines"})


@pytest.mark.parametrize("first", range(0, SCHEDULES, SEEDS_PER_CHUNK))
def test_no_heavy_schedule_violates_an_invariant(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_CHUNK):
        outcome = run(seed, is_heavy=True)
        assert not outcome.violations, str(outcome)


@pytest.mark.rule("10.resident.place")
def test_no_schedule_of_resident_runs_violates_an_invariant() -> None:
    """In each of these, x-completion closes a resident run before it cancels the run's job run."""
    for seed in (57, 58, 77):
        outcome = run(seed, is_heavy=True, features=LINGERING)
        assert not outcome.violations, str(outcome)
        closed = [key for key, body in outcome.cloud.bucket.objects.items() if body == CLOSED]
        assert closed, f"nothing closes a resident run in schedule {seed} any more; take another one"


@pytest.mark.parametrize("mistake", HEAVY, ids=lambda mistake: mistake.name)
def test_a_mistake_on_the_heavy_path_is_found(mistake: Mistake) -> None:
    seed = find_seed(mistake, is_heavy=True)

    assert seed is not None, "no schedule detects the mistake"
    assert not violations_without(seed, mistake.kind, is_heavy=True, features=mistake.features), (
        "the schedule fails without the mistake too"
    )


def test_a_lost_event_is_found_while_dispatch_asks_again_and_again() -> None:
    """A run ends, and its event is lost: what else waits for a place keeps x-dispatch at work until the reconciler has come."""
    features = frozenset({"deadlines", "deploys", "moves", "overrides", "pauses", "waits"})
    outcome = run(6215, is_heavy=True, features=features)
    assert outcome.violations == ()
