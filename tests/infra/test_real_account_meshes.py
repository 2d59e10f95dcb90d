"""The meshes of `scripts/real-account-smoke --all` pass synthesis and the limit gate, before and after their change."""

import json
import os
from pathlib import Path

import pytest
from aws_cdk import App

from asya_infra.limits.gate import check_mesh
from asya_infra.synthesis import add_mesh
from tests.infra.conftest import FLAGS
from tests.paths import PROJECT
from tests.real_account.meshes import document
from tests.unit.repository.test_real_account_meshes import FULL, GIVEN

pytestmark = pytest.mark.slow
MESHES = [*FULL.meshes, *(FULL.changes if os.environ.get("ASYA_FULL_SIZE") else ())]


@pytest.mark.usefixtures("no_aws_environment")
@pytest.mark.parametrize("number", range(len(MESHES)))
def test_the_mesh_is_synthesized_within_the_limits(number: int, tmp_path: Path) -> None:
    (tmp_path / "mesh.yaml").write_text(json.dumps(document(MESHES[number], "all", GIVEN)))
    app = App(outdir=str(tmp_path / "out"), context={**FLAGS, "mesh": str(tmp_path / "mesh.yaml"), "stage": "smoke"})
    mesh = add_mesh(app, PROJECT)
    app.synth()
    assert check_mesh(mesh, tmp_path / "out") == []
