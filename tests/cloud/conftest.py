"""Local clouds that tests share, each deployed once with IAM enforced.

They hold the example mesh with Spark kept warm, a mesh of every path that an envelope can take, and a mesh for the callers of
the gateway.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asya_cli.connection import read_local
from asya_cli.mesh_client import MeshClient
from asya_local.cloud import UpOptions, down, up
from asya_local.emr.settings import WorkerSettings
from tests.cloud import callers
from tests.cloud.deployed_cloud import DeployedCloud
from tests.cloud.heavy_bursts import FULL, SHARED_RUN_IDS, all_bursts
from tests.cloud.heavy_cloud import HeavyCloud
from tests.cloud.paths_mesh import NewEnvelope, send, send_slow_envelopes, wait_for_final_state
from tests.doubles import emr_faults
from tests.doubles.issuer import running_issuer
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.callers import ApiCaller
    from tests.cloud.paths_mesh import FinalState
    from tests.doubles.issuer import Issuer


MESHES = Path(__file__).parent / "meshes"


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The example mesh, as `asya local up --auth` brings it up."""
    state = tmp_path_factory.mktemp("cloud")
    try:
        up(PROJECT / "mesh.yaml", state, UpOptions(auth=True, workers=WorkerSettings(slots=2, reuse=True)))
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The mesh of every path. What takes a minute by itself is on its way when the first test gets it."""
    state = tmp_path_factory.mktemp("paths")
    try:
        up(MESHES / "paths" / "mesh.yaml", state, UpOptions(auth=True))
        cloud = DeployedCloud(MeshClient(read_local(state)), state)
        # The gateway's functions have started when the many come: else each of these would start one of its own.
        wait_for_final_state(cloud, send(cloud, NewEnvelope(["step"], {})))
        send_slow_envelopes(cloud)
        yield cloud
        assert cloud.dead_letters() == {}
    finally:
        down(state)


@pytest.fixture(scope="session")
def rejected_state(paths: DeployedCloud) -> FinalState:
    """What was turned away because the two before it had failed: the circuit is open, and stays so for a while."""
    for number in range(2):
        envelope_id = send(paths, NewEnvelope(["flaky"], {}, envelope_id=f"down-{number}"))
        assert wait_for_final_state(paths, envelope_id).task.reason == "RuntimeError"
    return wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {}, envelope_id="rejected")))


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    """Who gives out tokens that the gateway's mesh takes."""
    with running_issuer("gateway") as found:
        yield found


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[DeployedCloud]:
    """A mesh of light actors whose operator is one person among others."""
    state = tmp_path_factory.mktemp("gateway")
    mesh = tmp_path_factory.mktemp("mesh") / "gateway"
    shutil.copytree(MESHES / "gateway", mesh, ignore=shutil.ignore_patterns("__pycache__"))
    file = mesh / "mesh.yaml"
    file.write_text(file.read_text().replace("http://127.0.0.1:0", issuer.url))
    try:
        up(file, state, UpOptions(auth=True))
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


@pytest.fixture(scope="session")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeavyCloud]:
    """A mesh of heavy actors, full of work from the start: starting Spark is what takes the time."""
    state = tmp_path_factory.mktemp("heavy")
    options = UpOptions(
        auth=True,
        workers=WorkerSettings(slots=2, cores=1, reuse=True),
        starts_per_second=1,
        start_burst=5,
        faults=emr_faults.MODULE,
    )
    try:
        up(MESHES / "heavy" / "mesh.yaml", state, options)
        mesh = HeavyCloud(DeployedCloud(MeshClient(read_local(state)), state))
        for route, payloads in all_bursts().items():
            mesh.send_all(payloads, *route)
            # A thousand share few runs if they arrive together: nothing else is to delay some of them.
            if FULL and route == ("square-all",):
                mesh.wait_for_ends(SHARED_RUN_IDS, "together-0")
        yield mesh
        assert mesh.dead_letters() == {}
    finally:
        down(state)


@pytest.fixture(scope="session")
def operator(gateway: DeployedCloud) -> ApiCaller:
    """Who sees every task of the gateway's mesh."""
    return callers.operator(gateway)


@pytest.fixture(scope="session")
def alice(gateway: DeployedCloud) -> ApiCaller:
    """Somebody who may call the gateway."""
    return callers.iam_user(gateway, "alice")


@pytest.fixture(scope="session")
def bob(gateway: DeployedCloud) -> ApiCaller:
    """Somebody else who may."""
    return callers.iam_user(gateway, "bob")
