"""A kind of actors from outside the product, in random schedules with faults: it loses nothing, and stamps each envelope."""

import sys
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from asya_infra.mesh_file import load_mesh, to_table
from tests.paths import PROJECT
from tests.simulation.cloud import deploy
from tests.simulation.faults import random_profile
from tests.simulation.inputs.meshes import SimulatedMesh, random_mesh
from tests.simulation.inputs.workload import Workload
from tests.simulation.invariants import FinalChecks

MESH = PROJECT / "tests" / "capability" / "mesh" / "mesh.yaml"
SCHEDULES = 6


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Import the capability as a function does, from the folder of its mesh."""
    folder = MESH.parent / "code"
    monkeypatch.syspath_prepend(str(folder))
    for name in [each for each in sys.modules if each.partition(".")[0] == "sample_capability"]:
        monkeypatch.delitem(sys.modules, name)
    return folder


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("kind", ["fault-free", "crashes", "errors", "repeats"])
def test_an_actor_of_its_kind_loses_nothing(kind: str) -> None:
    own = to_table(load_mesh(MESH))
    stamped = 0
    for seed in range(SCHEDULES):
        random = Random(f"stamps {seed}")
        profile = random_profile(random, kind)
        mesh = random_mesh(random, profile)
        table = structs.replace(
            mesh.table, actors={**mesh.table.actors, "seal": own.actors["seal"]}, capabilities=own.capabilities
        )
        cloud = deploy(SimulatedMesh(table, mesh.programs), random, profile)
        workload = Workload(cloud, random, frozenset())
        scheduler = cloud.simulation.scheduler
        with cloud.activate():
            workload.schedule(12)
            for tick in range(1, 20):
                scheduler.after(300.0 * tick, cloud.system.wake_all)
            scheduler.run()
        problems = [*cloud.ledger.violations, *FinalChecks(cloud, workload).problems()]
        assert problems == [], f"{kind}, seed {seed}"
        stamps = [key for key in cloud.bucket.objects if key.startswith("stamps/seal/")]
        stamped += len(stamps)
        assert len(stamps) % 2 == 0, "each envelope has two"
        assert ("stamp-counts.json" in cloud.bucket.objects) is True
    assert stamped > 0
