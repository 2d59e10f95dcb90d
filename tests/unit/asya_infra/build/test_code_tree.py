"""What the modes of this machine have of a folder of code, against what a deployment holds."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from asya_infra.build.code_tree import CodeTree, handler_tree, job_tree
from asya_infra.build.functions import build_handlers
from asya_infra.build.jobs import build_user_jobs
from asya_infra.build.packages import LAMBDA, Target
from tests.unit.asya_infra.build.code_folders import FILE, FOLDER, LINK, Entry, entries, make

HERE = Target(interpreter=Path(sys.executable))


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.lstat().st_mode) for path in files}


@pytest.mark.rule("6.code.one-tree")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries((FILE, FILE, FOLDER, LINK)))
def test_local_modes_have_the_files_that_a_deployment_holds(
    tmp_path_factory: pytest.TempPathFactory, made: list[Entry]
) -> None:
    folder = tmp_path_factory.mktemp("made")
    code, root = make(folder, made), folder / "build"
    assert contents(handler_tree(root, HERE, code, b"{}").content) == contents(
        build_handlers(root, LAMBDA, code, b"{}")
    )
    assert contents(job_tree(root, code).content) == contents(build_user_jobs(root, code))


@pytest.mark.rule("6.code.one-tree")
def test_what_code_writes_beside_itself_on_this_machine_is_never_deployed(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "orders.py").touch()
    for tree in (handler_tree(tmp_path / "build", HERE, code), job_tree(tmp_path / "build", code)):
        (tree.content / "cache.json").touch()
    assert contents(build_handlers(tmp_path / "build", HERE, code, None)).keys() == {"orders.py"}
    assert contents(build_user_jobs(tmp_path / "build", code)).keys() == {"orders.py"}


def test_errors_name_the_authors_own_files(tmp_path: Path) -> None:
    folder, content = tmp_path / "code", tmp_path / "build" / "copy"
    (folder / "größe").mkdir(parents=True)
    (folder / "größe" / "a b.py").touch()
    tree = CodeTree(folder, content)
    text = f'File "{content}/größe/a b.py", line 3\nFile "{content}/numpy/core.py", line 1\n'
    assert tree.as_written(text) == f'File "{folder}/größe/a b.py", line 3\nFile "{content}/numpy/core.py", line 1\n'
