"""The limit gate over meshes of several sizes, a fifth of their actors heavy: AWS would accept each.

Policies are longest with a customer managed key and a network, and many actors have the most of them. `make test` has 30 such
actors, and 20 with a hundred triggers; `make test-full` has up to 300.
"""

import os
from pathlib import Path

import pytest
from aws_cdk import App

from asya_infra.limits.gate import LimitError, check_mesh
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import read_options
from asya_infra.stacks import add_stacks
from tests.infra.conftest import FLAGS
from tests.infra.sized_mesh import write_sized_mesh
from tests.paths import PROJECT

FULL_SIZE = bool(os.environ.get("ASYA_FULL_SIZE"))


def synthesize(folder: Path, mesh_file: Path) -> None:
    """Synthesize a mesh, and hold it against the limits. It saves time to leave out cdk-nag, which other tests have."""
    app = App(outdir=str(folder / "out"), context={**FLAGS, "mesh": str(mesh_file)})
    options = read_options(app.node.try_get_context, PROJECT)
    mesh = Mesh(load_mesh(options.mesh, options.stage), options)
    add_stacks(app, mesh)
    check_mesh(mesh, Path(app.synth().directory))


@pytest.mark.parametrize("actors", [6, *([50, 100, 300] if FULL_SIZE else [])])
def test_aws_accepts_a_mesh_of_any_size(tmp_path: Path, no_aws_environment: None, actors: int) -> None:
    synthesize(tmp_path, write_sized_mesh(tmp_path, actors))


@pytest.mark.parametrize("actors", [100 if FULL_SIZE else 30])
def test_aws_accepts_a_mesh_with_a_key_and_a_network(tmp_path: Path, no_aws_environment: None, actors: int) -> None:
    synthesize(tmp_path, write_sized_mesh(tmp_path, actors, private=True))


@pytest.mark.rule("16.start.route")
@pytest.mark.parametrize("actors", [50 if FULL_SIZE else 20])
def test_aws_accepts_a_mesh_with_a_hundred_triggers(tmp_path: Path, no_aws_environment: None, actors: int) -> None:
    """Each on a bus has a rule, and the policy of their queue names no single one; x-triggers sends to all actors."""
    synthesize(tmp_path, write_sized_mesh(tmp_path, actors, triggers=100))


def test_a_mesh_that_aws_would_refuse_is_refused(tmp_path: Path, no_aws_environment: None) -> None:
    mesh = write_sized_mesh(tmp_path, 6)
    text = mesh.read_text().replace('"raw/*"', ", ".join(f'"raw-{number}-{"x" * 100}/*"' for number in range(60)))
    mesh.write_text(text)
    with pytest.raises(LimitError) as refusal:
        synthesize(tmp_path, mesh)
    lines = str(refusal.value).splitlines()
    assert lines[0] == "AWS would refuse this mesh:"
    policy = [line for line in lines if "of a managed policy" in line]
    assert {number for number in range(6) if any(f"{number:03}" in line for line in policy)} == {*range(6)}, lines
