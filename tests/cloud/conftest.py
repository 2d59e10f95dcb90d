"""Local clouds that tests share, each deployed once with IAM enforced.

The meshes are the example, `paths` (routes and failures), `gateway` (callers), `heavy` (job runs) and `tenants` (isolation).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya_local.cloud import UpOptions, down, up
from asya_local.emr.settings import WorkerSettings
from tests.cloud import callers
from tests.cloud.deployed_cloud import DeployedCloud
from tests.cloud.heavy_bursts import FULL, SHARED_RUN_IDS, all_bursts
from tests.cloud.heavy_cloud import HeavyCloud
from tests.cloud.paths_mesh import NewEnvelope, send, send_slow_envelopes, wait_for_final_state
from tests.doubles import emr_faults
from tests.doubles.issuer import running_issuer
from tests.doubles.otlp_collector import otlp_collector
from tests.paths import PROJECT
from tests.simulation.same_verdict.left_out import is_left_to_the_kit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.callers import ApiCaller
    from tests.cloud.paths_mesh import FinalState
    from tests.doubles.issuer import Issuer
    from tests.doubles.otlp_collector import Collector


MESHES = Path(__file__).parent / "meshes"
SECRETS = {
    "vault/key": "vault-key-5d1f0c7e",
    "ssm:/vault/token": "vault-token-93ab62d4",
    "hooks/github": "a-key-of-github-6b1c9d",
    "hooks/stripe": "whsec_a_key_of_stripe_1f3a",
}
"""The values of the secrets of the gateway mesh."""
HEAVY_SECRETS = {"heavy/vault": "heavy-vault-0c4be81f"}
"""The values of the secrets of the heavy mesh."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves to the test kit what it shows as well, unless this folder or a file in it is asked for, or the full size."""
    if FULL or any(_is_here(argument) for argument in config.args):
        return
    left = [item for item in items if _is_here(item.nodeid) and _is_left_to_the_kit(item)]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


def _is_here(address: str) -> bool:
    """Whether an argument or an id of pytest names this folder, or something in it."""
    folder = Path(__file__).parent
    return folder in ((path := (PROJECT / address.partition("::")[0]).resolve()), *path.parents)


def _is_left_to_the_kit(item: pytest.Item) -> bool:
    return is_left_to_the_kit(item.path.stem, item.name.partition("[")[0], item.name)


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """The collector of the traces of the example mesh."""
    with otlp_collector() as running:
        yield running


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[DeployedCloud]:
    """The example mesh, as `asya local up` starts it, with Spark kept warm and traces exported."""
    state = tmp_path_factory.mktemp("cloud")
    file = tmp_path_factory.mktemp("example") / "mesh.yaml"
    example = (PROJECT / "mesh.yaml").read_text()
    for folder in ("functions/handlers", "spark_jobs"):
        example = example.replace(f": {folder}\n", f": {PROJECT / folder}\n")
    file.write_text(f"{example}\ntelemetry: {{otlp: {collector.base_url}}}\n")
    try:
        up(file, state, UpOptions(workers=WorkerSettings(at_once=2, reuse=True)))
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The paths mesh. The slow envelopes are sent first, so that other tests run while they wait."""
    state = tmp_path_factory.mktemp("paths")
    try:
        up(MESHES / "paths" / "mesh.yaml", state)
        cloud = DeployedCloud(MeshClient(read_local(state)), state)
        # One envelope starts the gateway's functions; otherwise each of the following ones causes a cold start.
        wait_for_final_state(cloud, send(cloud, NewEnvelope(["step"], {})))
        send_slow_envelopes(cloud)
        yield cloud
        assert cloud.dead_letters() == {}
    finally:
        down(state)


@pytest.fixture(scope="session")
def rejected_state(paths: DeployedCloud) -> FinalState:
    """The final state of an envelope that the circuit breaker rejected, after two failures opened the circuit."""
    for number in range(2):
        envelope_id = send(paths, NewEnvelope(["flaky"], {}, envelope_id=f"down-{number}"))
        assert wait_for_final_state(paths, envelope_id).task.reason == "RuntimeError"
    return wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {}, envelope_id="rejected")))


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    """The issuer of the tokens that the gateway mesh accepts."""
    with running_issuer("gateway") as running:
        yield running


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[DeployedCloud]:
    """A mesh of light actors with one operator and other callers."""
    state = tmp_path_factory.mktemp("gateway")
    mesh = tmp_path_factory.mktemp("mesh") / "gateway"
    shutil.copytree(MESHES / "gateway", mesh, ignore=shutil.ignore_patterns("__pycache__"))
    file = mesh / "mesh.yaml"
    file.write_text(file.read_text().replace("http://127.0.0.1:0", issuer.url))
    (state / "secrets.env").write_text("".join(f"{name}={value}\n" for name, value in SECRETS.items()))
    try:
        up(file, state)
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


@pytest.fixture(scope="session")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeavyCloud]:
    """A mesh of heavy actors. All bursts are sent at once, because Spark starts slowly."""
    state = tmp_path_factory.mktemp("heavy")
    (state / "secrets.env").write_text("".join(f"{name}={value}\n" for name, value in HEAVY_SECRETS.items()))
    options = UpOptions(
        workers=WorkerSettings(at_once=2, cores=1, reuse=True),
        starts_per_second=1,
        start_burst=5,
        faults=emr_faults.MODULE,
    )
    try:
        up(MESHES / "heavy" / "mesh.yaml", state, options)
        mesh = HeavyCloud(DeployedCloud(MeshClient(read_local(state)), state))
        for route, payloads in all_bursts().items():
            mesh.send_all(payloads, *route)
            # In full size, 1,000 envelopes share few runs only if other bursts delay none of them.
            if FULL and route == ("square-all",):
                mesh.wait_for_ends(SHARED_RUN_IDS, "together-0")
        yield mesh
        assert mesh.dead_letters() == {}
    finally:
        down(state)


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[DeployedCloud]:
    """A mesh whose heavy actors isolate tenants and envelopes; each job run has a process of its own."""
    state = tmp_path_factory.mktemp("tenants")
    mesh = tmp_path_factory.mktemp("mesh") / "tenants"
    shutil.copytree(MESHES / "tenants", mesh, ignore=shutil.ignore_patterns("__pycache__"))
    file = mesh / "mesh.yaml"
    file.write_text(file.read_text().replace("http://127.0.0.1:0", issuer.url))
    try:
        up(file, state, UpOptions(workers=WorkerSettings(at_once=2, cores=1)))
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


@pytest.fixture(scope="session")
def operator(gateway: DeployedCloud) -> ApiCaller:
    """The operator of the gateway mesh."""
    return callers.operator(gateway)


@pytest.fixture(scope="session")
def alice(gateway: DeployedCloud) -> ApiCaller:
    """A caller of the gateway."""
    return callers.iam_user(gateway, "alice")


@pytest.fixture(scope="session")
def bob(gateway: DeployedCloud) -> ApiCaller:
    """Another caller of the gateway."""
    return callers.iam_user(gateway, "bob")
