"""`asya init`: a project whose tests pass and whose mesh is valid."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.scaffold import files
from asya_cli.scaffold.init import Template


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_tests(folder: Path, *options: str) -> str:
    """The tests of a project, with nothing of this one."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("template", Template)
def test_a_new_project_is_valid_and_its_tests_pass(template: Template, tmp_path: Path) -> None:
    made = run("init", "shop", "--template", template.value)
    assert (made.exit_code, made.stdout) == (0, "shop\n")
    assert "cd shop\n  asya dev\n" in made.stderr
    mesh = str(tmp_path / "shop" / "mesh.yaml")
    for line in (
        line for line in (tmp_path / "shop" / "README.md").read_text().splitlines() if line.startswith("asya new ")
    ):
        assert run(*line.split()[1:], "--mesh", mesh).exit_code == 0, line
    checked = run("validate", "--no-limits", "--mesh", mesh)
    assert checked.exit_code == 0, checked.exception
    assert [line for line in checked.stderr.splitlines() if "operators: names nobody" not in line] == []
    jobs = ("sales", "count_orders")  # their tests pass in tests/spark, which has a session
    assert " passed" in run_tests(tmp_path / "shop", *(f"--ignore=tests/test_{job}.py" for job in jobs))


@pytest.mark.parametrize(
    ("name", "advice"), [("My Shop", "Type: asya init my-shop"), ("..", "such as: asya init shop")]
)
def test_a_wrong_name_says_what_to_type(name: str, advice: str, tmp_path: Path) -> None:
    error = run("init", name).exception
    assert isinstance(error, CommandError)
    assert advice in error.advice
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mesh.yaml").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("shop", "file", "link"):
        error = run("init", name).exception
        assert isinstance(error, CommandError)
        assert error.problem == f"{name} exists already; nothing was changed"
    assert (tmp_path / "shop" / "mesh.yaml").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    assert run("init", "shop").exit_code == 0
    assert (tmp_path / "shop" / "mesh.yaml").read_text().startswith("namespace: shop\n")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", ".")

    monkeypatch.setattr(files.tempfile, "mkdtemp", refuse)
    error = run("init", "shop").exception
    assert isinstance(error, CommandError)
    assert error.problem == "cannot make the folder shop: Permission denied"
    assert list(tmp_path.iterdir()) == []
