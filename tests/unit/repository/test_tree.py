"""Tests the source tree for rules that import-linter cannot check.

import-linter checks imports, not calls: a pure module with `datetime.now()` passes. These tests read the names of the
pure modules from the contracts in pyproject.toml.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.paths import PROJECT

SOURCES = {
    "asya": PROJECT / "functions" / "asya",
    "asya_spark": PROJECT / "spark_jobs" / "asya_spark",
    "asya_infra": PROJECT / "infra" / "asya_infra",
    "asya_local": PROJECT / "infra" / "asya_local",
    "asya_cli": PROJECT / "asya_cli",
}
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "uuid1", "uuid4", "open", "getenv", "print", "input"})
NOT_PURE = {"asya.runtime", "asya.testing", "asya.client"}
"""One calls user code. The others are deployed nowhere: one runs whole meshes, the other is what programs call."""
PURE = "Pure modules know no AWS, clock, randomness, file or network"
SLICES = "Capabilities import only those below them"
GATEWAY = "Within the gateway: functions, protocols for models and agents, streams, calls, HTTP, decisions"


def contract(name: str) -> dict[str, Any]:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    match: dict[str, Any] = next(each for each in contracts if each["name"] == name)
    return match


@cache
def modules() -> dict[str, Path]:
    """The path of each source module by its dotted name; a package has the name of its folder."""
    return {
        ".".join((package, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): path
        for package, root in SOURCES.items()
        for path in sorted(root.rglob("*.py"))
    }


def pure_modules() -> Iterator[tuple[str, Path]]:
    """Yields the modules that the contract names; a pattern matches modules of one level, never packages."""
    patterns = contract(PURE)["source_modules"]
    for name, path in modules().items():
        if path.name != "__init__.py" and any(
            fnmatchcase(name, pattern) and name.count(".") == pattern.count(".") for pattern in patterns
        ):
            yield name, path


def impure_calls(source: str) -> list[str]:
    """The names of calls that read a clock, draw a random number or reach outside the process."""
    calls = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            calls += [name] if name in IMPURE_CALLS else []
        elif isinstance(node, ast.ImportFrom):
            calls += [alias.name for alias in node.names if alias.name in IMPURE_CALLS]
    return calls


@pytest.mark.slow
def test_pure_modules_read_no_clock_and_draw_no_random_numbers() -> None:
    pure = dict(pure_modules())
    assert len(pure) > 80
    calls = {name: impure_calls(path.read_text(encoding="utf-8")) for name, path in pure.items()}
    assert {name: impure for name, impure in calls.items() if impure} == {}


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("datetime.now(UTC)", ["now"]),
        ("from uuid import uuid4", ["uuid4"]),
        ("uuid4()", ["uuid4"]),
        ("decide(moment, now=moment)", []),
    ],
)
def test_impure_calls_are_detected(source: str, calls: list[str]) -> None:
    assert impure_calls(source) == calls


def test_every_module_at_the_root_of_a_slice_is_pure() -> None:
    pure = {name for name, _ in pure_modules()}
    slices = {layer.strip() for line in contract(SLICES)["layers"] for layer in line.split("|")} - NOT_PURE
    roots = {
        name for name, path in modules().items() if path.name != "__init__.py" and name.rpartition(".")[0] in slices
    }
    assert roots - pure == set(), f"the contract {PURE!r} in pyproject.toml does not name them"


def test_the_contract_names_every_slice() -> None:
    """Other contracts hold for every folder of `asya.capabilities` by a wildcard; this one orders some of them besides."""
    slices = {layer.strip() for line in contract(SLICES)["layers"] for layer in line.split("|")}
    folders = {f"asya.{path.parent.name}" for path in SOURCES["asya"].glob("*/__init__.py")}
    named = {name for name in slices if not name.startswith("asya.capabilities.")}
    assert folders - {"asya.capabilities"} == named, (
        f"give each folder a layer in the contract {SLICES!r} in pyproject.toml"
    )


def test_every_package_has_a_docstring() -> None:
    undocumented = [
        name
        for name, path in modules().items()
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert undocumented == []


def test_every_unit_test_file_has_its_module() -> None:
    """`tests/unit` mirrors the source: `test_sidecar_acks.py` is in the folder that matches the one of `sidecar.py`."""
    orphans = []
    for package, root in SOURCES.items():
        mirror = PROJECT / "tests" / "unit" / package
        for path in sorted(mirror.rglob("test_*.py")):
            subject = path.stem.removeprefix("test_")
            folder = root / path.parent.relative_to(mirror)
            names = {each.stem for each in folder.glob("*.py")} | {folder.name}
            if not any(subject == name or subject.startswith(f"{name}_") for name in names):
                orphans.append(str(path.relative_to(PROJECT)))
    assert orphans == []


COMMAND_CLOCK = "asya_cli/clock.py"
_COMMAND_CLOCK_READS = re.compile(
    r"datetime\.now|\btoday\(|\butcnow|\btime\.(time|monotonic|perf_counter|sleep|localtime|strftime)\b|from time import"
)
CONSOLE_CLOCK = "console/src/shared/clock.ts"
_CONSOLE_CLOCK_READS = re.compile(r"Date\.now|new Date\(\)|\bDate\(\)|performance\.now|timeOrigin|Temporal\.")


@pytest.mark.parametrize(
    ("folder", "suffixes", "reads", "own"),
    [
        ("asya_cli", {".py"}, _COMMAND_CLOCK_READS, COMMAND_CLOCK),
        ("console/src", {".ts", ".tsx"}, _CONSOLE_CLOCK_READS, CONSOLE_CLOCK),
    ],
)
def test_the_command_and_the_console_have_one_clock_each(
    folder: str, suffixes: set[str], reads: re.Pattern[str], own: str
) -> None:
    """So that a test sets the time of all ages at once, and two of them never disagree."""
    found = {
        path.relative_to(PROJECT).as_posix()
        for path in (PROJECT / folder).rglob("*")
        if path.suffix in suffixes and reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == {own}


def test_the_wheel_installs_exactly_the_five_packages() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {Path(package).name for package in wheel["packages"]} == set(SOURCES)
