"""Each place that treats the local cloud differently from AWS is in the table of differences."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import PROJECT

PAGE = PROJECT / "docs" / "reference" / "local-cloud.md"
INFRA, LOCAL = PROJECT / "infra" / "asya_infra", PROJECT / "infra" / "asya_local"

NEUTRAL = {
    "cloud": "starts and stops the parts",
    "errors": "the error of the commands",
    "health": "asks whether the parts are up",
    "processes": "finds and ends processes",
    "secret_file": "stores the values of secrets",
    "servers": "starts the servers",
    "state_folder": "names files",
    "sources": "hashes what a cloud is made of",
    "steps": "prints the time of each step",
    "watching": "waits for changes of files",
}
"""The modules of the local cloud that change no template and no call, and what they do."""


def documented() -> set[str]:
    """The modules and functions in the last column of the table."""
    table = PAGE.read_text(encoding="utf-8").split("## Differences from AWS", 1)[1]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`([a-z_.]+)`", row[3])}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT / "infra").with_suffix("").parts)


def readers_of(attribute: str) -> Iterator[str]:
    """The modules of the infrastructure that read an attribute."""
    for path in INFRA.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.Attribute) and node.attr == attribute for node in ast.walk(tree)):
            yield module_name(path)


def replacements(path: Path, function: str) -> set[str]:
    """The functions that a function puts in place of those of MiniStack."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (body,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    values = [node.value for node in ast.walk(body) if isinstance(node, ast.Assign)]
    return {name.id for value in values for name in ast.walk(value) if isinstance(name, ast.Name)}


@pytest.mark.slow
def test_each_branch_for_the_local_cloud_is_documented() -> None:
    modules = set(readers_of("layer_target"))
    assert "asya_infra.stacks" in modules  # the search finds the branches
    assert modules - documented() == set()


def test_each_replaced_part_of_ministack_is_documented() -> None:
    functions = replacements(LOCAL / "ministack" / "server.py", "_patch_ministack")
    assert "evaluate_trust_policy" in functions
    assert {*functions, "behind_tls"} - documented() == set()


def test_each_module_of_the_local_cloud_is_documented_or_neutral() -> None:
    files = [path for folder in (".", "account", "ministack") for path in (LOCAL / folder).glob("*.py")]
    modules = {module_name(path).removeprefix("asya_local.") for path in files if path.stem != "__init__"}
    in_table = {name.removeprefix("asya_local.") for name in documented() if name.startswith("asya_local.")}
    assert modules - in_table == NEUTRAL.keys()


def test_each_difference_of_spark_is_shown_by_a_test() -> None:
    table = PAGE.read_text(encoding="utf-8").split("### Spark and S3", 1)[1].split("\n#", 1)[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 5
    for row in rows:
        assert "::" in row[4], f"no test shows {row[1]}"
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[4] + row[5]):
            assert f"\ndef {name}(" in (PROJECT / path).read_text(encoding="utf-8"), name


def test_each_documented_name_exists() -> None:
    names = documented()
    modules = {name for name in names if name.startswith("asya_")}
    missing = {
        name
        for name in modules
        if not (path := PROJECT / "infra" / Path(*name.split("."))).with_suffix(".py").is_file() and not path.is_dir()
    }
    assert missing == set()
    source = (LOCAL / "ministack" / "server.py").read_text(encoding="utf-8")
    assert {name for name in names - modules if f"def {name}(" not in source} == set()
