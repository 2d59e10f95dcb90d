"""What decides that packages are installed again: all that their installation reads on this machine."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from asya_infra.build.folder import digest
from asya_infra.build.requirements import LocalProject, installation_inputs, read_requirements


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable or setting of this machine."""
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "mesh" / "handlers"
    folder.mkdir(parents=True)
    return folder


def written(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def key(code: Path) -> str:
    return digest(installation_inputs(code / "requirements.txt"))


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("-r ../shared/req.txt", "shared/req.txt"),
        ("-r../shared/req.txt", "shared/req.txt"),
        ("--requirement=../shared/req.txt", "shared/req.txt"),
        ("--requirement ../shared/req.txt  # those of all", "shared/req.txt"),
        ("-c constraints.txt", "handlers/constraints.txt"),
        ("--constraint ../constraints.txt", "constraints.txt"),
        ("-r ../shared/a.txt", "shared/b.txt"),
        ("./wheels/lib-1-py3-none-any.whl", "handlers/wheels/lib-1-py3-none-any.whl"),
        ("lib @ file:../lib-1-py3-none-any.whl ; python_version > '3'", "lib-1-py3-none-any.whl"),
        ("lib[fast] @ ../lib-1-py3-none-any.whl", "lib-1-py3-none-any.whl"),
        ("--find-links ../wheels\nlib", "wheels/lib-1-py3-none-any.whl"),
        ("-f ../wheels\nlib", "wheels/another-1-py3-none-any.whl"),
        ("../lib", "lib/src/lib/__init__.py"),
        ("-e ../lib", "lib/src/lib/data.json"),
        ("--editable=../lib[fast]", "lib/pyproject.toml"),
        ("lib @ ../lib", "lib/src/lib/new.py"),
        ("-r ../shared/local.txt", "lib/src/lib/__init__.py"),
        ("jmespath \\\n  --hash=sha256:00\n-r \\\n  ../shared/req.txt", "shared/req.txt"),
        ("-r ${PLACE}/req.txt", "shared/req.txt"),
    ],
)
def test_each_file_that_the_requirements_name_is_an_input(
    code: Path, line: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = code.parent
    monkeypatch.setenv("PLACE", "../shared")
    written(mesh / "shared" / "req.txt", "jmespath==1.0.1\n")
    written(mesh / "shared" / "a.txt", "-r b.txt\n")
    written(mesh / "shared" / "b.txt", "six\n")
    written(mesh / "shared" / "local.txt", "../lib\n")
    for path in (
        "handlers/constraints.txt",
        "constraints.txt",
        "lib-1-py3-none-any.whl",
        "wheels/lib-1-py3-none-any.whl",
    ):
        written(mesh / path, "one")
    written(mesh / "handlers" / "wheels" / "lib-1-py3-none-any.whl", "one")
    written(mesh / "lib" / "pyproject.toml", '[project]\nname = "lib"\n')
    written(mesh / "lib" / "src" / "lib" / "__init__.py")
    written(mesh / "lib" / "src" / "lib" / "data.json")
    written(code / "requirements.txt", f"{line}\n")
    before = key(code)
    assert key(code) == before
    written(mesh / file, "another content")
    assert key(code) != before


def test_a_moved_folder_has_the_same_inputs(code: Path, tmp_path: Path) -> None:
    for mesh in (code.parent, tmp_path / "moved"):
        written(mesh / "handlers" / "requirements.txt", "-r ../shared/req.txt\n../lib\n")
        written(mesh / "shared" / "req.txt", "six\n")
        written(mesh / "lib" / "pyproject.toml", '[project]\nname = "lib"\n')
    assert key(code) == key(tmp_path / "moved" / "handlers")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("UV_INDEX", "https://packages.example/simple"),
        ("UV_DEFAULT_INDEX", "https://packages.example/simple"),
        ("UV_EXCLUDE_NEWER", "2026-01-01"),
        ("UV_PRERELEASE", "allow"),
        ("UV_CONSTRAINT", "limits.txt"),
        ("MY_VERSION", "1.0.1"),
    ],
)
def test_variables_that_change_the_packages_are_inputs(
    code: Path, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(code / "requirements.txt", "jmespath==${MY_VERSION}\n")
    before = key(code)
    monkeypatch.setenv(name, value)
    assert key(code) != before


@pytest.mark.parametrize("name", ["UV_CONSTRAINT", "UV_OVERRIDE", "UV_FIND_LINKS", "UV_CONFIG_FILE"])
def test_files_of_variables_are_inputs(code: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = code.parent / ("wheels" if name == "UV_FIND_LINKS" else "file.txt")
    file = written(named / "a.whl" if name == "UV_FIND_LINKS" else named, "one")
    written(code / "requirements.txt", "jmespath\n")
    monkeypatch.setenv(name, f"../{named.name}" if name != "UV_CONFIG_FILE" else str(named))
    before = key(code)
    written(file, "another content")
    assert key(code) != before


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("UV_CACHE_DIR", "/one", "/two"),
        ("UV_HTTP_TIMEOUT", "10", "20"),
        ("UV_RUN_RECURSION_DEPTH", "1", "2"),
        ("UV_INDEX_SHOP_PASSWORD", "one", "two"),
        ("UV_INDEX", "https://me:token-1@packages.example/simple", "https://me:token-2@packages.example/simple"),
    ],
)
def test_how_uv_works_and_credentials_are_no_inputs(
    code: Path, name: str, first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(code / "requirements.txt", "jmespath\n")
    keys = set()
    for value in (first, second):
        monkeypatch.setenv(name, value)
        keys.add(key(code))
    assert len(keys) == 1


@pytest.mark.parametrize("place", ["mesh/handlers/uv.toml", "mesh/uv.toml", "mesh/pyproject.toml", "home/uv/uv.toml"])
def test_settings_of_uv_are_inputs_and_the_rest_of_a_project_is_none(code: Path, tmp_path: Path, place: str) -> None:
    written(code / "requirements.txt", "jmespath\n")
    table = "[tool.uv.pip]" if place.endswith("pyproject.toml") else "[pip]"
    file = written(tmp_path / place, f'{table}\nfind-links = ["./wheels"]\n')
    before = key(code)
    written(file.parent / "wheels" / "lib-1-py3-none-any.whl")
    with_wheel = key(code)
    assert with_wheel != before
    written(file, f'{table}\nindex-url = "https://packages.example/simple"\n')
    assert key(code) not in (before, with_wheel)
    if place.endswith("pyproject.toml"):
        changed = key(code)
        written(file, f'{file.read_text()}[project]\nversion = "2"\n')
        assert key(code) == changed


def built_by_setuptools(folder: Path) -> None:
    (folder / "build" / "bdist.linux-x86_64").mkdir(parents=True)
    written(folder / "build" / "lib" / "lib" / "gone.py")
    written(folder / "lib.egg-info" / "SOURCES.txt")


def compiled(folder: Path) -> None:
    written(folder / "src" / "__pycache__" / "lib.cpython-313.pyc")


@pytest.mark.parametrize("leave", [built_by_setuptools, compiled])
def test_what_a_build_leaves_is_no_input(code: Path, leave: Callable[[Path], None]) -> None:
    project = code.parent / "lib"
    written(project / "pyproject.toml", '[project]\nname = "lib"\n')
    written(code / "requirements.txt", "../lib\n")
    before = key(code)
    leave(project)
    assert key(code) == before


@pytest.mark.parametrize(
    ("line", "files", "name"),
    [
        ("../lib", {"pyproject.toml": '[project]\nname = "my-lib"\n'}, "my-lib"),
        ("-e ../lib", {"setup.cfg": "[metadata]\nname = my_lib\n"}, "my_lib"),
        ("own.name @ ../lib", {"setup.py": ""}, "own.name"),
        ("own[a] @ file:../lib", {"pyproject.toml": '[project]\nname = "my-lib"\n'}, "own"),
        ("../lib", {"setup.py": "", "pyproject.toml": "[not toml"}, None),
    ],
)
def test_the_name_of_a_local_project(code: Path, line: str, files: dict[str, str], name: str | None) -> None:
    for file, text in files.items():
        written(code.parent / "lib" / file, text)
    written(code / "requirements.txt", f"{line}\n")
    assert read_requirements(code / "requirements.txt").projects == [LocalProject(code / "../lib", name)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_requirements_in_the_encodings_of_windows(code: Path, encoding: str) -> None:
    (code / "requirements.txt").write_bytes("-r more.txt\r\n".encode(encoding))
    written(code / "more.txt", "six\n")
    assert read_requirements(code / "requirements.txt").files == [code / "requirements.txt", code / "more.txt"]


def test_requirements_that_include_each_other_and_what_is_missing(code: Path) -> None:
    written(code / "requirements.txt", "-r more.txt\n-r missing.txt\n./missing.whl\n'\n")
    (code / "sub").mkdir()
    written(code / "more.txt", "-r sub/../requirements.txt\n")
    before = key(code)
    written(code / "missing.whl")
    assert key(code) != before
