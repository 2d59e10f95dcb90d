"""What `up` does follows from what has changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from asya_infra.mesh_file import load_mesh
from asya_local.sources import Deployed, Sources, read_sources

MESH = """
namespace: shop
code: handlers
jobs: jobs
actors:
  check: {handler: orders.check}
  total: {spark: {job: totals.total}}
"""
FILES = {
    "mesh.yaml": MESH,
    "handlers/orders.py": "def check(payload):\n    return payload\n",
    "jobs/totals.py": "def total(spark, payload):\n    return payload\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def sources(folder: Path, application_id: str = "local") -> Sources:
    return read_sources(load_mesh(folder / "mesh.yaml"), "", application_id, "python3")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("handlers/orders.py", {"handlers"}),
        ("handlers/more.py", {"handlers"}),
        ("jobs/totals.py", {"jobs"}),
        ("jobs/.hidden.py", set()),
        ("mesh.yaml", {"templates"}),
        ("handlers/requirements.txt", {"templates", "handlers"}),
        ("jobs/requirements.txt", {"templates", "jobs"}),
    ],
)
def test_a_changed_file_changes_what_is_made_of_it(folder: Path, name: str, changed: set[str]) -> None:
    before = sources(folder)
    with (folder / name).open("a") as file:
        file.write("# changed\n")
    after = sources(folder)

    assert {key for key in ("templates", "handlers", "jobs") if getattr(before, key) != getattr(after, key)} == changed


def test_the_application_is_part_of_the_templates(folder: Path) -> None:
    assert sources(folder, "one").templates != sources(folder, "other").templates


def test_a_record_of_another_version_is_none(tmp_path: Path) -> None:
    path = tmp_path / "deployed.json"
    assert Deployed.read(path) is None
    Deployed(Sources("a", "b", "c"), in_place=True).write(path)
    assert Deployed.read(path) == Deployed(Sources("a", "b", "c"), in_place=True)
    change: Callable[[str], str] = lambda text: text.replace("handlers", "other")  # noqa: E731
    path.write_text(change(path.read_text()))
    assert Deployed.read(path) is None


def test_a_changed_type_changes_no_template(folder: Path) -> None:
    before = sources(folder)
    (folder / "handlers" / "orders.py").write_text("def check(payload: dict[str, int]) -> list[str]:\n    return []\n")
    (folder / "jobs" / "totals.py").write_text("def total(spark, payload: float) -> float:\n    return payload\n")
    assert sources(folder).templates == before.templates
