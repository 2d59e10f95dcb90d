"""Waits of three days, in simulated time, across a deployment of another version of the mesh."""

from random import Random

import pytest
from msgspec import structs

from asya.protocol.wait import Wait
from tests.simulation.cloud import deploy
from tests.simulation.deploys.deployment import Deployment
from tests.simulation.faults import random_profile
from tests.simulation.inputs.features import Features
from tests.simulation.inputs.meshes import SimulatedMesh, random_mesh
from tests.simulation.inputs.workload import Workload
from tests.simulation.invariants import FinalChecks

DAY = 86_400.0
# In some schedules no envelope reaches a wait.
SCHEDULES = 8
FEATURES: Features = frozenset({"waits", "deploys", "cancels"})


def waiting_mesh(seed: int, kind: str) -> tuple[SimulatedMesh, Random, object]:
    """A random mesh whose wait actors hold envelopes for three days."""
    random = Random(f"waits of days {seed}")
    profile = random_profile(random, kind)
    mesh = random_mesh(random, profile, features=FEATURES)
    wait = Wait(seconds=3 * DAY)
    actors = {
        name: structs.replace(actor, wait=wait) if actor.kind == "wait" else actor
        for name, actor in mesh.table.actors.items()
    }
    return SimulatedMesh(structs.replace(mesh.table, actors=actors), mesh.programs), random, profile


@pytest.mark.rule("11.wait.sent", "11.wait.passed-on")
@pytest.mark.parametrize("kind", ["fault-free", "crashes", "errors", "repeats"])
def test_a_wait_of_three_days_survives_a_deployment(kind: str) -> None:
    waited = 0
    for seed in range(SCHEDULES):
        mesh, random, profile = waiting_mesh(seed, kind)
        cloud = deploy(mesh, random, profile)  # type: ignore[arg-type]
        workload = Workload(cloud, random, FEATURES)
        scheduler = cloud.simulation.scheduler
        with cloud.activate():
            workload.schedule(12)
            scheduler.start(Deployment(cloud, random).roll_out, delay=DAY)
            # A route may lead through several waits.
            for day in range(1, 40):
                scheduler.after(day * DAY / 2, cloud.system.wake_minutely)
            scheduler.run()
        waited += sum(key.startswith("waiting/") for key in cloud.bucket.objects)
        problems = [*cloud.ledger.violations, *FinalChecks(cloud, workload).problems()]
        assert problems == [], f"{kind}, seed {seed}"
    assert waited > 3
