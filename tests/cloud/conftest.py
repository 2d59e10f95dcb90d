"""One local cloud with the example mesh for all tests that need one: deployed once, IAM enforced, Spark kept warm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from asya_cli.connection import read_local
from asya_cli.mesh_client import MeshClient
from infra.local.cloud import UpOptions, down, up
from infra.local.emr.settings import WorkerSettings
from infra.local.tools import PROJECT
from tests.cloud.deployed_cloud import DeployedCloud

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The example mesh, as `asya local up --auth` brings it up."""
    state = tmp_path_factory.mktemp("cloud")
    try:
        up(PROJECT / "mesh.yaml", state, UpOptions(auth=True, workers=WorkerSettings(slots=2, reuse=True)))
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)
