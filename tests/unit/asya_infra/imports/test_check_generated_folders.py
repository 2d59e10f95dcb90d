"""`asya validate` passes if, and only if, a function imports its handler from what is built: over folders that nobody has drawn up.

Each folder has packages, links, hidden files and data, and modules that import and open them. The built function is imported by
Python itself, in its folder, with nothing of the checks.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asya_infra.build.functions import build_handlers
from asya_infra.build.packages import Target
from asya_infra.imports.check import check_imports
from asya_infra.mesh_file import MeshFileError, load_mesh
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for

NAMES = st.sampled_from(["one", "two", "rates", "_three", ".four", "environment", "node_modules", "five.json", "tests"])
FILES = st.sampled_from(
    ["__init__.py", "one.py", "two.py", "_six.py", ".seven.py", "rates.json", ".rates.json", "pyvenv.cfg"]
)
PATHS = st.lists(NAMES, max_size=2).flatmap(lambda parts: FILES.map(lambda file: "/".join([*parts, file])))
# What a line of a module does; the path begins at the folder of handlers.
LINES = st.one_of(
    st.tuples(st.just("import {module}"), PATHS),
    st.tuples(st.just("from {package} import {name}"), PATHS),
    st.tuples(st.just("open({path!r}).close()"), PATHS),
    st.tuples(st.just("import pathlib\n(pathlib.Path(__file__).parent / {path!r}).read_bytes()"), PATHS),
    st.tuples(st.just("import os\nassert os.listdir({folder!r})"), PATHS),
    st.tuples(st.just("import importlib.resources as r\nr.files({package!r}).joinpath({file!r}).read_bytes()"), PATHS),
    st.tuples(st.just("assert {path!r} not in ()"), PATHS),
)
FOLDERS = st.fixed_dictionaries(
    {
        "files": st.dictionaries(
            PATHS, st.sampled_from(["", "X = 1\n", "\ufeffX = 1\n", "# coding: latin-1\nX = 1\n"]), max_size=8
        ),
        "links": st.dictionaries(
            st.sampled_from(["one", "linked", "two/one", "rates.json", "link.py"]), PATHS, max_size=3
        ),
        "modules": st.lists(st.lists(LINES, max_size=2), min_size=2, max_size=4),
    }
)


def write(folder: Path, drawn: dict[str, Any]) -> dict[str, str]:
    """Write a folder as it was drawn; returns the handlers by actor."""
    code = folder / "handlers"
    code.mkdir()
    for name, content in drawn["files"].items():
        _write(code / name, content)
        _write(folder / "shared" / name, content)
    for name, goal in drawn["links"].items():
        target = folder / "shared" / goal
        path = code / name
        if not os.path.lexists(path) and path.parent.is_dir() and target.exists():
            path.symlink_to(target if name.endswith((".json", ".py")) else target.parent)
    handlers = {}
    for number, lines in enumerate(drawn["modules"]):
        text = "".join(f"{_line(line, path)}\n" for line, path in lines)
        _write(code / f"handler{number}.py", f"{text}def handle(payload): ...\n")
        handlers[f"actor{number}"] = f"handler{number}.handle"
    return handlers


def _write(path: Path, content: str) -> None:
    if any(parent.is_file() for parent in path.parents) or path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def _line(line: str, path: str) -> str:
    package, _, file = path.rpartition("/")
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    is_name = all(part.isidentifier() for part in module.split("."))
    values = {
        "path": path,
        "file": file,
        "folder": package or ".",
        "module": module if is_name else "one",
        "package": package.replace("/", ".") if package and is_name else "one",
        "name": file.removesuffix(".py") if is_name else "X",
    }
    return line.format(**values)


def write_mesh(folder: Path, handlers: dict[str, str]) -> Path:
    lines = (f"  {actor}: {{handler: {name}}}" for actor, name in handlers.items())
    path = folder / "mesh.yaml"
    path.write_text("\n".join(["namespace: shop", "code: handlers", "actors:", *lines, ""]))
    return path


def refused(folder: Path, handlers: dict[str, str], build: Path) -> set[str]:
    """The actors whose handlers the checks refuse: those of the mesh file, and the imports of the others."""
    try:
        loaded = load_mesh(write_mesh(folder, handlers))
    except MeshFileError as error:
        problems = error.problems
    else:
        found = check_imports(loaded, build)
        assert not found.notes
        return {str(place[1]) for place, _ in found.findings}
    named = {problem.where.split(".")[1] for problem in problems if problem.where.startswith("actors.")}
    assert named, problems
    rest = {actor: name for actor, name in handlers.items() if actor not in named}
    return named | (refused(folder, rest, build) if rest else set())


def not_imported(folder: Path, handlers: dict[str, str], build: Path) -> Iterator[str]:
    """Yield the actors whose handlers Python does not import from the built function."""
    python = interpreter_for(FUNCTION_PYTHON).path
    function = build_handlers(build, Target(interpreter=python), folder / "handlers", b'{"namespace": "shop"}')
    for actor, name in handlers.items():
        program = f"import {name.partition('.')[0]} as module; module.handle"
        command = [str(python), "-P", "-S", "-c", program]
        variables = {"PYTHONPATH": str(function), "PYTHONDONTWRITEBYTECODE": "1"}
        if subprocess.run(command, cwd=function, env=variables, capture_output=True, check=False).returncode:
            yield actor


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports-build")


@pytest.mark.slow
@pytest.mark.rule("6.code.imports")
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=FOLDERS)
def test_checks_pass_if_the_built_function_imports(build: Path, drawn: dict[str, Any]) -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        handlers = write(folder, drawn)
        expected = set(not_imported(folder, handlers, folder / "deployed"))
        assert refused(folder, handlers, build) == expected
