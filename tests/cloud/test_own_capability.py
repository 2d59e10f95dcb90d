"""A capability that the mesh file names (`tests/capability/mesh`): its actors, its sweep and its call, with its own rights."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya_local.cloud import down, up
from asya_local.processes import cloud_processes
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.test_dev import Author
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.cloud

MESH = PROJECT / "tests" / "capability" / "mesh" / "mesh.yaml"


@pytest.fixture(scope="module")
def stamped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The mesh of the sample."""
    if not os.environ.get("ASYA_FULL_SIZE"):
        pytest.skip(
            "a cloud of its own (make test-full); the kit and `asya dev` run the mesh, tests/capability has its roles"
        )
    state = tmp_path_factory.mktemp("stamped")
    try:
        up(MESH, state)
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


def counts(cloud: DeployedCloud) -> dict[str, int]:
    """Ask the call of the capability, which a function of its own answers."""
    return cloud.mesh.ask("GET", "/api/v1/stamps", dict[str, int]) or {}


def test_its_actors_its_sweep_and_its_call_work_together(stamped: DeployedCloud) -> None:
    before = counts(stamped).get("seal", 0)
    task = stamped.mesh.call_tool("welcome", b'{"name": "Ada"}')
    assert stamped.wait_for_result(task)[1]["payload"] == {"text": "Hello Ada"}
    stamped.run_scheduled("x-stamp-count")
    assert counts(stamped) == {"seal": before + 2}


def test_asya_dev_runs_it_and_follows_its_code(tmp_path: Path) -> None:
    shutil.copytree(MESH.parent, tmp_path, dirs_exist_ok=True)
    author = Author(tmp_path, {})
    try:
        task = author.cloud.mesh.call_tool("welcome", b'{"name": "Ada"}')
        assert author.cloud.wait_for_result(task)[1]["payload"] == {"text": "Hello Ada"}
        until(lambda: counts(author.cloud) == {"seal": 2} or None, "the sweep of the capability")
        assert author.asya("stamps") == "seal: 2\n"
        since = len(author.lines)
        author.edit("code/sample_capability/calls.py", "self.stamps.counts()", '{"changed": 1}')
        author.sees("handlers loaded in", since)
        assert counts(author.cloud) == {"changed": 1}
        since = len(author.lines)
        author.edit("code/sample_capability/calls.py", "import dataclass", "import no_such_thing, dataclass")
        author.sees("cannot import name 'no_such_thing'", since)
        author.sees("The mesh goes on as it was before.", since)
        assert counts(author.cloud) == {"changed": 1}
        author.edit("code/sample_capability/calls.py", "no_such_thing, ", "")
        author.edit("code/sample_capability/calls.py", '"changed": 1', '"changed": 2')
        until(lambda: counts(author.cloud) == {"changed": 2} or None, "the mended call")
    finally:
        author.end()
    assert not cloud_processes(author.state)
