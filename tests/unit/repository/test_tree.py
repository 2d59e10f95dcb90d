"""The tree: what import-linter's contracts in pyproject.toml cannot see.

import-linter sees imports, not calls: `datetime.now()` in a pure module passes it. The contracts name the pure modules, and
these tests read them there.
"""

import ast
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
MODULES_PER_FOLDER = 20
WIDER = {"asya/protocol"}
"""The wire forms of the mesh stay together."""

IMPURE_CALLS = frozenset({"now", "utcnow", "today", "uuid1", "uuid4", "open", "getenv", "print", "input"})
PURE = "Pure modules know no AWS, clock, randomness, file or network"
SLICES = "Capabilities import only those below them"


def contract(name: str) -> dict[str, Any]:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found: dict[str, Any] = next(each for each in contracts if each["name"] == name)
    return found


@cache
def modules() -> dict[str, Path]:
    """Every module of every source package by its dotted name; packages by the name of their folder."""
    return {
        ".".join((package, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): path
        for package, root in SOURCES.items()
        for path in sorted(root.rglob("*.py"))
    }


def pure_modules() -> Iterator[tuple[str, Path]]:
    """The modules that the contract names; a pattern matches one level and no folder."""
    patterns = contract(PURE)["source_modules"]
    for name, path in modules().items():
        if path.name != "__init__.py" and any(
            fnmatchcase(name, pattern) and name.count(".") == pattern.count(".") for pattern in patterns
        ):
            yield name, path


def impure_calls(source: str) -> list[str]:
    """Calls that read a clock, draw a random number or reach outside the process, by name."""
    called = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            called += [name] if name in IMPURE_CALLS else []
        elif isinstance(node, ast.ImportFrom):
            called += [alias.name for alias in node.names if alias.name in IMPURE_CALLS]
    return called


def test_pure_modules_read_no_clock_and_draw_nothing_at_random() -> None:
    pure = dict(pure_modules())
    assert len(pure) > 80
    calls = {name: impure_calls(path.read_text(encoding="utf-8")) for name, path in pure.items()}
    assert {name: found for name, found in calls.items() if found} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("datetime.now(UTC)", ["now"]),
        ("from uuid import uuid4", ["uuid4"]),
        ("uuid4()", ["uuid4"]),
        ("decide(moment, now=moment)", []),
    ],
)
def test_an_impure_call_is_found(source: str, found: list[str]) -> None:
    assert impure_calls(source) == found


def test_every_module_at_the_root_of_a_slice_is_pure() -> None:
    pure = {name for name, _ in pure_modules()}
    slices = {layer.strip() for line in contract(SLICES)["layers"] for layer in line.split("|")} - {"asya.runtime"}
    roots = {
        name
        for name, path in modules().items()
        if path.name != "__init__.py" and name.rpartition(".")[0] in slices | {"asya.gateway.a2a"}
    }
    assert roots - pure == set()


def test_every_slice_has_its_place_in_the_contract() -> None:
    slices = {layer.strip() for line in contract(SLICES)["layers"] for layer in line.split("|")}
    folders = {f"asya.{path.name}" for path in SOURCES["asya"].iterdir() if (path / "__init__.py").exists()}
    assert folders == slices | {"asya.legacy"}


def test_no_folder_holds_more_modules_than_one_looks_through() -> None:
    sizes: dict[str, int] = {}
    for name, path in modules().items():
        if path.name not in ("__init__.py", "__main__.py"):
            folder = name.rpartition(".")[0].replace(".", "/")
            sizes[folder] = sizes.get(folder, 0) + 1
    assert {folder: size for folder, size in sizes.items() if size > MODULES_PER_FOLDER and folder not in WIDER} == {}


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        name
        for name, path in modules().items()
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_no_file_of_a_unit_test_is_without_its_module() -> None:
    """`tests/unit` mirrors the source: `test_sidecar_acks.py` stands where `sidecar.py` stands in the source."""
    lost = []
    for package, root in SOURCES.items():
        mirror = PROJECT / "tests" / "unit" / package
        for path in sorted(mirror.rglob("test_*.py")):
            subject = path.stem.removeprefix("test_")
            folder = root / path.parent.relative_to(mirror)
            names = {each.stem for each in folder.glob("*.py")} | {folder.name}
            if not any(subject == name or subject.startswith(f"{name}_") for name in names):
                lost.append(str(path.relative_to(PROJECT)))
    assert lost == []


def test_nothing_but_the_five_packages_is_installed() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {Path(package).name for package in wheel["packages"]} == set(SOURCES)
