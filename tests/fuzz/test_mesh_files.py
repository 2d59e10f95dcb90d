"""Any mesh file is loaded, or refused with the line of each problem."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from asya_infra.mesh_file import MeshFileError, load_mesh
from asya_infra.mesh_file.source import Problem
from tests.fuzz.mutations import mutated
from tests.fuzz.sizes import examples
from tests.paths import PROJECT

MESHES = tuple(
    PROJECT / folder / "mesh.yaml"
    for folder in (".", "tests/infra/mesh", "tests/cloud/meshes/paths", "tests/cloud/meshes/gateway")
)


def check_load(path: Path, text: str) -> None:
    """Check that a mesh file loads, or that its error has problems, each with its line."""
    path.write_text(text, "utf-8", "surrogatepass")
    problems = problems_of(path)
    assert problems is None or problems
    assert all(problem.line >= 1 and problem.message for problem in problems or ())


def problems_of(path: Path) -> tuple[Problem, ...] | None:
    """The problems of a mesh file; None if it loads."""
    try:
        load_mesh(path)
    except MeshFileError as error:
        return error.problems
    return None


@pytest.fixture(params=MESHES, ids=lambda path: path.parent.name)
def mesh(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A copy of a mesh file beside the code of its actors, and its text."""
    source: Path = request.param
    for each in source.parent.iterdir():
        if each.name in ("handlers", "jobs", "functions", "spark_jobs"):
            (tmp_path / each.name).symlink_to(each)
    return tmp_path / "mesh.yaml", source.read_text()


@given(data=st.data())
@examples(12, 250)
def test_any_value_is_loaded_or_refused(mesh: tuple[Path, str], data: st.DataObject) -> None:
    path, text = mesh
    value: Any = data.draw(mutated(yaml.safe_load(text)))
    check_load(path, yaml.safe_dump(value, allow_unicode=True))


@given(data=st.data())
@examples(8, 125)
def test_any_text_is_loaded_or_refused(mesh: tuple[Path, str], data: st.DataObject) -> None:
    """Some characters of the file are cut out, or others put in."""
    path, text = mesh
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 40, len(text))))
    inserted = data.draw(
        st.text(max_size=5) | st.sampled_from(("&a ", "*a", "<<: ", "!!python/object:os ", "\t", "---\n"))
    )
    check_load(path, text[:start] + inserted + text[stop:])
