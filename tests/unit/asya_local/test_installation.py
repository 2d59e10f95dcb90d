"""A cloud whose state cannot be restored or saved is deployed all the same."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asya_infra.mesh_file import load_mesh
from asya_local import installation
from asya_local.deployment import Snapshot
from asya_local.errors import LocalCloudError
from asya_local.installation import Installation, UpOptions
from asya_local.servers import Servers
from asya_local.state_folder import StateFolder
from asya_local.steps import Steps
from tests.unit.asya_local.test_deployment_snapshots import CONNECTION, SERVERS

MESH = "namespace: shop\nactors:\n  check: {handler: orders.check}\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    mesh = tmp_path / "mesh.yaml"
    mesh.write_text(MESH.replace("actors:", "code: functions/handlers\nactors:"))
    (tmp_path / "functions" / "handlers" / "orders.py").write_text("def check(payload):\n    return payload\n")
    tools: Any = SimpleNamespace(cloud_python="python3", java_home=None)
    cloud = Installation(StateFolder.at(tmp_path / "state"), tools, load_mesh(mesh), UpOptions(), Steps())
    cloud.folder.create()
    monkeypatch.setattr(Installation, "_start_servers", lambda _: (SERVERS, None))
    monkeypatch.setattr(Installation, "_deploy", lambda *_: CONNECTION)
    monkeypatch.setattr(installation, "take_snapshot", lambda *_: None)
    monkeypatch.setattr(installation, "previous_servers", lambda _: SERVERS)
    monkeypatch.setattr(installation.Snapshot, "read", lambda _: Snapshot(cloud.sources, CONNECTION))
    return cloud


@pytest.mark.parametrize("error", [LocalCloudError("MiniStack ended during its start"), FileNotFoundError("keys.json")])
def test_a_state_that_cannot_be_restored_is_discarded_and_the_mesh_is_deployed(
    installed: Installation, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def start_servers(*_: object, restores: bool = False) -> Servers:
        assert restores
        raise error

    monkeypatch.setattr(installation, "start_servers", start_servers)
    installed.folder.snapshot.mkdir()

    assert installed.start() == CONNECTION
    assert not installed.folder.snapshot.exists()
    assert str(error) in (installed.folder.logs / "snapshot.log").read_text()


def test_a_state_that_cannot_be_saved_is_no_failure_of_the_cloud(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_snapshot(*_: object) -> None:
        raise LocalCloudError("the state of the cloud cannot be saved")

    monkeypatch.setattr(installation.Snapshot, "read", lambda _: None)
    monkeypatch.setattr(installation, "take_snapshot", take_snapshot)

    assert installed.start() == CONNECTION
    assert "cannot be saved" in (installed.folder.logs / "snapshot.log").read_text()
