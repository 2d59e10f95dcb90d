"""The code of a mesh in tests: what is deployed of it, under the names of the author's files."""

import subprocess
import sys
from pathlib import Path

import pytest

from asya.testing import Mesh
from asya.testing.code_views import view_of
from asya_infra.build.code_files import CodeFilesError, code_files

MESH = """
namespace: shop
code: handlers
actors: {files: {handler: orders.files}, broken: {handler: orders.broken}}
"""
ORDERS = """
import os
from pathlib import Path

from common import rates

HERE = Path(__file__).resolve().parent

def files(payload):
    skipped = {".pyc", ".pyo"}
    found = sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*") if path.is_file() and path.suffix not in skipped)
    return {"files": found, "rate": rates.read(), "is_root": os.environ["LAMBDA_TASK_ROOT"] == str(HERE)}

def broken(payload):
    return rates.broken()
"""
RATES = """
from pathlib import Path

def read():
    return (Path(__file__).parent / "rates.json").read_text()

def broken():
    raise ValueError("no rate")
"""
TESTS = """
import orders
from common import rates

def test_the_mesh_runs_the_modules_of_the_tests(asya_mesh, monkeypatch):
    monkeypatch.setattr(rates, "read", lambda: "patched")
    assert asya_mesh.send("files", {}).result["rate"] == "patched"

def test_code_is_that_of_the_author():
    assert orders.files.__code__.co_filename == AUTHORS
    assert orders.__file__ != AUTHORS
    assert not (orders.HERE / ".env").exists()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    handlers, shared = tmp_path / "handlers", tmp_path / "shared" / "common"
    for folder in (handlers, shared):
        folder.mkdir(parents=True)
    (shared / "rates.py").write_text(RATES)
    (shared / "rates.json").write_text("[1.1]")
    (handlers / "common").symlink_to("../shared/common")
    (handlers / "orders.py").write_text(ORDERS)
    (handlers / "my table.csv").touch()
    (handlers / ".env").write_text("KEY=secret")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path


@pytest.mark.rule("6.code.one-tree")
def test_a_handler_sees_the_files_that_are_deployed(project: Path) -> None:
    mesh = Mesh(project / "mesh.yaml")
    # Code is imported by the first message, as it is then.
    (project / "handlers" / "late.csv").touch()
    expected = sorted(code_files(project / "handlers").targets)
    assert mesh.send("files", {}).result == {"files": expected, "rate": "[1.1]", "is_root": True}
    run = mesh.send("broken", {})
    assert f'File "{project}/handlers/common/rates.py", line 8, in broken' in str(run.errors[0].traceback)


def test_a_view_follows_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").touch()
    (folder / "old.csv").touch()
    view = view_of(folder)
    (folder / "old.csv").unlink()
    (folder / "package" / "__init__.py").unlink()
    (folder / "package").rmdir()
    (folder / "package").write_text("a file now")
    (folder / "new").mkdir()
    (folder / "new" / "tool").touch(0o755)
    assert view_of(folder) == view
    assert {str(path.relative_to(view)) for path in view.rglob("*") if path.is_file()} == {"package", "new/tool"}
    assert (view / "new" / "tool").stat().st_mode & 0o111
    (folder / "gone").symlink_to("nothing")
    with pytest.raises(CodeFilesError, match="code/gone is a link to nothing"):
        view_of(folder)


@pytest.mark.slow
@pytest.mark.parametrize("place", [".", "handlers"])
def test_tests_import_the_same_modules_wherever_they_lie(project: Path, place: str) -> None:
    """Also with the author's folder on the path, as the setting `pythonpath` of many projects has it."""
    text = TESTS.replace("AUTHORS", repr(str(project / "handlers" / "orders.py")))
    (project / place / "test_shop.py").write_text(text)
    (project / "pytest.ini").write_text("[pytest]\npythonpath = handlers\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        f"{place}/test_shop.py",
    ]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "2 passed" in result.stdout


@pytest.mark.slow
def test_the_head_of_a_session_names_what_is_left_out(project: Path) -> None:
    (project / "test_shop.py").write_text("def test_nothing(): ...\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert f"{project}/handlers/.env: is not deployed: it is a file of variables" in result.stdout


@pytest.mark.rule("6.code.one-tree")
def test_a_handler_works_in_the_folder_of_its_code(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = "open('common/rates.json').read()"
    code = f"AT_IMPORT = {read}\ndef files(payload): return [AT_IMPORT, {read}]\ndef broken(payload): ...\n"
    (project / "handlers" / "orders.py").write_text(code)
    monkeypatch.chdir(project)
    assert Mesh(project / "mesh.yaml").send("files", {}).result == ["[1.1]", "[1.1]"]
    assert Path.cwd() == project
