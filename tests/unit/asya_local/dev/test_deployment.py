"""What a mesh of `asya dev` is made of."""

from pathlib import Path

import pytest

from asya.protocol.mesh_table import decode_table
from asya_infra.mesh_file import load_mesh
from asya_local.dev.deployment import Deployment
from asya_local.dev.running_mesh import _Sources
from asya_local.errors import LocalCloudError
from asya_local.sources import load

MESH = """
namespace: shop
code: handlers
jobs: jobs
actors:
  check: {handler: orders.check, env: {CURRENCY: EUR}}
  count: {spark: {job: lines.count}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, text in (("handlers/orders.py", "def check(payload): ..."), ("jobs/lines.py", "def count(s, p): ...")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path / "mesh.yaml"


def deployment(mesh: Path) -> Deployment:
    return Deployment(loaded=load_mesh(mesh), gateway_url="http://127.0.0.1:1")


def test_runs_wait_for_no_further_envelopes(shop: Path) -> None:
    mesh = deployment(shop)
    assert mesh.table.actors["count"].batch.window == 0
    assert mesh.table.actors["count"].batch.size == 500
    assert (mesh.light_actors, mesh.heavy_actors) == (["check"], ["count", "x-index"])


def test_functions_have_the_settings_of_a_deployment(shop: Path, tmp_path: Path) -> None:
    mesh = deployment(shop)
    settings = mesh.settings("check")
    assert settings.queue_url("check").endswith("/000000000000/asya-shop-check")
    assert settings.data_uri == "s3://asya-shop-000000000000-us-east-1/data/"
    assert mesh.variables("check") == {"CURRENCY": "EUR", "ASYA_ACTOR": "check"}
    assert mesh.common_variables(tmp_path)["LAMBDA_TASK_ROOT"] == str(tmp_path)
    assert decode_table(mesh.table_bytes()) == mesh.table


def test_a_change_is_one_of_the_mesh_the_handlers_the_packages_or_the_jobs(shop: Path) -> None:
    def changed() -> set[str]:
        nonlocal before
        now = _Sources.of(load_mesh(shop))
        found = {name for name, value in vars(now).items() if value != getattr(before, name)}
        before = now
        return found

    before = _Sources.of(load_mesh(shop))
    assert changed() == set()
    shop.write_text(MESH + "# a comment\n")
    assert changed() == set()
    shop.write_text(MESH.replace("EUR", "NOK"))
    assert changed() == {"mesh"}
    (shop.parent / "handlers" / "orders.py").write_text("def check(payload): return payload")
    assert changed() == {"handlers"}
    (shop.parent / "handlers" / "requirements.txt").write_text("# none\n")
    assert changed() == {"handlers", "packages"}
    (shop.parent / "jobs" / "lines.py").write_text("def count(s, p): return p")
    assert changed() == {"jobs"}


def test_a_mistake_in_the_mesh_file_is_told_with_its_line(shop: Path) -> None:
    shop.write_text(MESH.replace("handler:", "handlr:"))
    with pytest.raises(LocalCloudError, match="handlr"):
        load(shop, "")
