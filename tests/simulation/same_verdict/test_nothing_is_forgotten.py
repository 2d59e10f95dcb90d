"""Each test of `tests/cloud` runs on the test kit too, or has the reason why it cannot."""

import ast
from pathlib import Path

import pytest

from tests.paths import PROJECT
from tests.simulation.same_verdict.left_out import LEFT_OUT, ON_BOTH, SLOW_ON_THE_KIT, is_left_to_the_kit

CLOUD = {path.stem: path for path in sorted((PROJECT / "tests" / "cloud").glob("test_*.py"))}
ON_THE_KIT = [
    *Path(__file__).parent.glob("test_*_on_the_kit.py"),
    *(PROJECT / "tests" / "spark").glob("test_same_verdict_of_*.py"),
]


def taken_by(path: Path) -> set[str]:
    """The files of `tests/cloud` whose tests a module on the kit takes."""
    tree = ast.parse(path.read_text())
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tests.cloud"
        for alias in node.names
    }
    return {
        imported[argument.id]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "comparable"
        for argument in node.args
        if isinstance(argument, ast.Name)
    }


def names_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("file", CLOUD)
def test_each_test_of_a_file_runs_on_the_kit_or_has_a_reason(file: str) -> None:
    reasons = LEFT_OUT.get(file, {})
    modules = [path.name for path in ON_THE_KIT if file in taken_by(path)]
    if isinstance(reasons, str):
        assert (reasons != "", modules) == (True, [])
        return
    assert len(modules) == 1, f"no module of tests on the kit, or several, take {file}: {modules}"
    assert {name.partition("[")[0] for name in reasons} <= names_in(CLOUD[file])
    assert names_in(CLOUD[file]) - reasons.keys(), f"no test of {file} is left: give one reason for the file"
    assert all(reasons.values())


def test_no_reason_is_for_a_file_that_does_not_exist() -> None:
    assert LEFT_OUT.keys() <= CLOUD.keys()


def test_the_cloud_keeps_what_the_kit_cannot_run_and_what_has_a_reason() -> None:
    assert {file for path in ON_THE_KIT if "not FULL" in path.read_text() for file in taken_by(path)} == {
        *SLOW_ON_THE_KIT
    }
    for file, tests in ON_BOTH.items():
        assert tests.keys() <= names_in(CLOUD[file]) - LEFT_OUT.get(file, {}).keys()
        assert all(tests.values())
        assert not any(is_left_to_the_kit(file, name) for name in tests)
    assert is_left_to_the_kit("test_paths", "test_a_route_of_25_hops_runs_25_handlers")
    assert not is_left_to_the_kit("test_attacks", "test_any")
    assert not is_left_to_the_kit("test_gateway", "test_a_canceled_task_stays_canceled")
    assert not is_left_to_the_kit("test_heavy_scale", "test_any")
