"""Which mesh a name means: a local cloud, or one on AWS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from asya.client import mesh
from asya.client.defaults import OPTIONS
from asya.client.errors import MeshError, UnreachableError
from asya.client.mesh import select
from tests.unit.asya.client.test_connection import LOCAL

if TYPE_CHECKING:
    from pathlib import Path

ON_AWS: list[tuple[str, str | None, str | None]] = []


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder without variables; what is looked up on AWS is noted."""
    monkeypatch.chdir(tmp_path)
    for name in OPTIONS:
        monkeypatch.delenv(f"ASYA_{name.upper()}", raising=False)
    ON_AWS.clear()
    monkeypatch.setattr(mesh, "find_on_aws", lambda *arguments: ON_AWS.append(arguments))
    return tmp_path


def local_cloud(state: Path, namespace: str) -> None:
    state.mkdir(parents=True)
    (state / "local.json").write_text(json.dumps(LOCAL | {"namespace": namespace}))


def test_a_name_means_the_local_cloud_that_runs_it(folder: Path) -> None:
    local_cloud(folder / ".asya", "shop")
    assert select("shop").namespace == "shop"
    assert select(None).namespace == "shop"
    assert ON_AWS == []


def test_another_name_means_a_mesh_on_aws(folder: Path) -> None:
    local_cloud(folder / ".asya", "flights")
    select("shop")
    assert ON_AWS == [("shop", None, None)]


def test_region_and_profile_mean_aws_also_beside_a_local_cloud(folder: Path) -> None:
    local_cloud(folder / ".asya", "shop")
    select("shop", region="eu-north-1")
    select("shop", profile="admin")
    assert ON_AWS == [("shop", "eu-north-1", None), ("shop", None, "admin")]


def test_the_file_names_what_the_program_does_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "asya.toml").write_text('namespace = "shop-prod"\nregion = "eu-north-1"\n')
    local_cloud(folder / ".asya", "shop")
    select(None)
    select(None, region="us-east-1")
    assert ON_AWS == [("shop-prod", "eu-north-1", None), ("shop-prod", "us-east-1", None)]
    assert select("shop").namespace == "shop"
    monkeypatch.setenv("ASYA_NAMESPACE", "shop-test")
    select(None)
    assert ON_AWS[-1] == ("shop-test", "eu-north-1", None)


def test_the_environment_names_a_state_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cloud(folder / "there", "shop")
    monkeypatch.setenv("ASYA_STATE", "there")
    assert select("shop").namespace == select(None).namespace == "shop"


def test_a_state_folder_is_the_local_cloud_in_it(folder: Path) -> None:
    local_cloud(folder / "there", "shop")
    assert select(None, state="there").namespace == "shop"
    assert select("shop", state=folder / "there").namespace == "shop"
    with pytest.raises(MeshError, match="runs the mesh 'shop', and not 'flights'"):
        select("flights", state="there")


def test_a_state_folder_and_a_region_name_two_meshes(folder: Path) -> None:
    local_cloud(folder / "there", "shop")
    with pytest.raises(MeshError, match="a local cloud has no region and no profile"):
        select(None, state="there", region="eu-north-1")


def test_without_a_mesh_the_error_says_how_to_start_one() -> None:
    with pytest.raises(UnreachableError, match="no mesh is running here"):
        select(None)


@pytest.mark.parametrize(
    ("local", "here"), [(None, "no mesh is running in .asya"), ("shop", ".asya runs the mesh 'shop'")]
)
def test_a_name_that_means_no_mesh_is_an_error_about_both_places(
    folder: Path, monkeypatch: pytest.MonkeyPatch, local: str | None, here: str
) -> None:
    """Most often the program runs in another folder, or the name is mistyped."""
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "ASYA_STATE", "ASYA_REGION", "ASYA_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    if local:
        local_cloud(folder / ".asya", local)
    with pytest.raises(MeshError) as caught:
        select("shpo")
    assert caught.value.problem == f"no AWS region is configured; {here}"
    assert caught.value.advice == (
        "Set --region or AWS_REGION. For a local mesh, run `asya dev` in this folder, or name its folder with `state`."
    )
