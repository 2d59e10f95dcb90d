"""`asya new`: adds to a mesh, all or nothing."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.scaffold import files

MESH = """\
# My mesh
namespace: shop
code: handlers
jobs: jobs
actors:
  check: {handler: orders.check} # checks
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "orders.py").write_text("def check(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["new", *arguments])


def failure(*arguments: str) -> CommandError:
    error = run(*arguments).exception
    assert isinstance(error, CommandError)
    return error


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["actor", "ship-orders"], ["handlers/ship_orders.py", "tests/test_ship_orders.py"]),
        (["spark-actor", "count"], ["jobs/count.py", "tests/test_count.py"]),
        (["tool", "quote"], ["handlers/quote.py", "tests/test_quote.py"]),
        (["tool", "Look.up", "--route", "check"], ["tests/test_look_up.py"]),
    ],
)
def test_code_an_entry_and_a_test_are_added(shop: Path, arguments: list[str], files: list[str]) -> None:
    before = content(shop)
    done = run(*arguments)
    assert done.exit_code == 0, done.exception
    assert done.stdout.splitlines() == [*files, "mesh.yaml"]
    after = content(shop)
    assert after.keys() - before.keys() == set(files)
    assert after["mesh.yaml"].startswith(MESH)
    assert f"  {arguments[1]}:\n" in after["mesh.yaml"]


def test_a_heavy_actor_adds_spark_to_the_requirements_of_the_tests(shop: Path) -> None:
    (shop / "requirements-dev.txt").write_text("asya-mesh[test]==0.1.0 # here\n")
    assert run("actor", "one").exit_code == 0
    assert (shop / "requirements-dev.txt").read_text() == "asya-mesh[test]==0.1.0 # here\n"
    assert run("spark-actor", "two").exit_code == 0
    assert (shop / "requirements-dev.txt").read_text() == "asya-mesh[test,spark]==0.1.0 # here\n"


@pytest.mark.parametrize(
    ("arguments", "problem", "advice"),
    [
        (["actor", "check"], "mesh.yaml:6: there is already 'check' in actors", "Choose another name."),
        (["actor", "orders"], "handlers/orders.py exists already", "Choose another name"),
        (["actor", "Ship"], "actor name 'Ship' is not a DNS label", "Type: asya new actor ship"),
        (["spark-actor", "x-sink"], "actor name 'x-sink' is reserved", "asya new spark-actor sink"),
        (["tool", "a b"], "tool name 'a b' should have", "--route ACTOR"),
        (["tool", "A"], "actor name 'A' is not a DNS label", "--route ACTOR"),
        (["tool", "bill", "--route", "chek"], "did you mean 'check'?", "asya new actor NAME"),
        (["actor", "bill", "--mesh", "no.yaml"], "there is no mesh file no.yaml", "asya init NAME"),
    ],
)
def test_a_mistake_says_what_to_type_and_changes_nothing(
    shop: Path, arguments: list[str], problem: str, advice: str
) -> None:
    before = content(shop)
    error = failure(*arguments)
    assert problem in error.problem
    assert advice in error.advice
    assert content(shop) == before


def test_an_invalid_mesh_file_is_told_first(shop: Path) -> None:
    (shop / "mesh.yaml").write_text(MESH.replace("handler:", "handlr:"))
    before = content(shop)
    assert "mesh.yaml:6: actors.check" in failure("actor", "bill").problem
    assert content(shop) == before


def test_a_section_in_braces_shows_what_to_write(shop: Path) -> None:
    (shop / "mesh.yaml").write_text("namespace: shop\ncode: handlers\nactors: {check: {handler: orders.check}}\n")
    before = content(shop)
    assert "actors:\n  bill:\n    handler: bill.bill" in failure("actor", "bill").advice
    assert content(shop) == before


def test_a_mesh_that_would_not_be_valid_is_not_written(shop: Path) -> None:
    (shop / "handlers" / "ship").mkdir()  # a package hides the new module
    (shop / "handlers" / "ship" / "__init__.py").write_text("")
    before = content(shop)
    error = failure("actor", "ship")
    assert error.problem.startswith("mesh.yaml:8: actors.ship.handler")
    assert "nothing was changed" in error.problem
    assert content(shop) == before


def test_a_failure_half_way_leaves_nothing(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "mesh.yaml")

    before = content(shop)
    monkeypatch.setattr(files.shutil, "copymode", fail)
    assert failure("actor", "bill").problem == "cannot write mesh.yaml: No space left on device; nothing was changed"
    assert content(shop) == before
    assert not (shop / "tests").exists()
