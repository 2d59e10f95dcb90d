"""A cloud starts with the state of an earlier one only if that has its templates and its addresses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from asya_local.deployment import Snapshot, discard_snapshot, take_snapshot
from asya_local.errors import LocalCloudError
from asya_local.servers import Servers
from asya_local.sources import Sources
from asya_local.state_folder import LocalConnection, StateFolder

SERVERS = Servers(ministack_port=1, emr_port=2)  # nobody listens
SOURCES = Sources(templates="a", handlers="b", jobs="c")
CONNECTION = LocalConnection(
    endpoint_url=SERVERS.endpoint,
    emr_endpoint_url=SERVERS.emr_endpoint,
    gateway_url="http://127.0.0.1:1/api",
    region="us-east-1",
    access_key="AKIA",
    secret_key="key",
    namespace="shop",
    results_bucket="results",
    results_prefix="",
    data_bucket="data",
    data_prefix="",
    tasks_table="tasks",
    mesh="mesh.yaml",
)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    folder = StateFolder.at(tmp_path)
    folder.snapshot.mkdir()
    content = {"sources": SOURCES.__dict__, "connection": CONNECTION.__dict__}
    (folder.snapshot / "made-of.json").write_text(json.dumps(content))
    return folder


def test_a_snapshot_fits_the_templates_and_the_addresses(folder: StateFolder) -> None:
    snapshot = Snapshot.read(folder)
    assert snapshot == Snapshot(SOURCES, CONNECTION)
    assert snapshot.fits(SOURCES, SERVERS)
    assert snapshot.fits(replace(SOURCES, handlers="new", jobs="new"), SERVERS)
    assert not snapshot.fits(replace(SOURCES, templates="new"), SERVERS)
    assert not snapshot.fits(SOURCES, replace(SERVERS, ministack_port=3))
    assert not snapshot.fits(SOURCES, None)  # its ports are taken


def test_a_snapshot_that_was_not_completed_is_none(folder: StateFolder) -> None:
    (folder.snapshot / "made-of.json").write_text('{"sources": {')
    assert Snapshot.read(folder) is None
    discard_snapshot(folder)
    assert Snapshot.read(folder) is None
    with pytest.raises(LocalCloudError, match=r"cannot be saved.*ministack\.log"):
        take_snapshot(folder, SERVERS, Snapshot(SOURCES, CONNECTION))
    assert Snapshot.read(folder) is None
