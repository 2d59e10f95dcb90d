"""The account and the region of a stage."""

from pathlib import Path

import pytest
from aws_cdk import App, Token

from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import Options
from asya_infra.stacks import MeshStack

TEXT = """
namespace: shop
actors: {a: {handler: shop.one}}
stages:
  dev: {}
  near: {region: eu-central-1}
  prod: {account: "012345678901", region: eu-central-1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    (tmp_path / "mesh.yaml").write_text(TEXT)
    return tmp_path / "mesh.yaml"


def stack(file: Path, options: Options) -> MeshStack:
    return MeshStack(App(), Mesh(load_mesh(file, options.stage), options), "state")


def test_a_stage_may_have_an_account_and_a_region(file: Path) -> None:
    made = stack(file, Options(mesh=file, stage="prod"))
    assert (made.account, made.region) == ("012345678901", "eu-central-1")
    assert made.environment == "aws://012345678901/eu-central-1"


def test_a_stage_may_have_a_region_alone(file: Path) -> None:
    assert stack(file, Options(mesh=file, stage="near")).environment == "aws://unknown-account/eu-central-1"


@pytest.mark.parametrize("options", [{"stage": "dev"}, {"stage": "prod", "layer_target": "local"}])
def test_otherwise_the_credentials_decide(file: Path, options: dict[str, str]) -> None:
    """The local cloud has one account and one region."""
    made = stack(file, Options(mesh=file, **options))  # type: ignore[arg-type]
    assert Token.is_unresolved(made.account)
    assert Token.is_unresolved(made.region)
