"""The groups of the tests that share a local cloud: a test in another group would deploy its mesh again."""

import ast
from pathlib import Path

import pytest

from tests.conftest import first_for, group_of
from tests.paths import PROJECT

CLOUD = PROJECT / "tests" / "cloud"
GROUPS = {
    "cloud": "the example mesh",
    "paths": "the paths mesh",
    "gateway": "the gateway mesh",
    "heavy": "the heavy mesh",
}


def parameters(file: Path) -> dict[str, set[str]]:
    """The parameters of the functions of a file: the fixtures that a test or a fixture asks for."""
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {each.name: {argument.arg for argument in each.args.args} for each in functions}


SHARED = parameters(CLOUD / "conftest.py")


def meshes(file: Path) -> set[str]:
    """The meshes that the tests of a file deploy, by their own fixtures and by fixtures of these."""
    own = parameters(file)
    known = SHARED | own
    found: set[str] = set()
    left = {name for name in own if name.startswith("test_")}
    while left:
        found |= left
        left = {asked for name in left for asked in known.get(name, set())} - found
    return (found & GROUPS.keys()) - own.keys()


@pytest.mark.parametrize("file", sorted(CLOUD.glob("test_*.py")), ids=lambda path: path.stem)
def test_the_tests_of_a_mesh_run_where_it_is_deployed(file: Path) -> None:
    own = f"tests/cloud/{file.name}"
    assert group_of(f"{own}::test") == next((GROUPS[mesh] for mesh in meshes(file)), own)
    assert len(meshes(file)) <= 1


def test_a_mesh_is_found_behind_other_fixtures() -> None:
    assert meshes(CLOUD / "test_attacks.py") == {"gateway"}
    assert meshes(CLOUD / "test_legacy_forms.py") == {"paths"}
    assert meshes(CLOUD / "test_local_access.py") == set()


def test_workers_with_a_cloud_start_with_the_tests_that_need_one() -> None:
    groups = ["infra", "the paths mesh", "tests/unit/test_a.py"]
    assert [first_for(worker, groups) for worker in ("gw0", "gw2")] == ["the paths mesh", "infra"]
    assert [first_for(worker, groups[:1]) for worker in ("gw1", "gw3")] == ["infra", "infra"]
    assert first_for("gw3", groups[1:2]) == "the paths mesh"
