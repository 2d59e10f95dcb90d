"""Tests use the public names of the test kit and of the doubles."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.paths import PROJECT

KIT = PROJECT / "functions" / "asya" / "testing"
DOUBLES = PROJECT / "tests" / "doubles"
# Names that the product defines too are left out: a name alone does not tell whose it is.
PRODUCT = ("functions", "infra", "asya_cli", "spark_jobs")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def defined(paths: Iterator[Path]) -> set[str]:
    """The private names of functions, classes, fields and attributes that modules define."""
    names = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    names.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    names.add(name)
    return {name for name in names if is_private(name)}


def reaches(path: Path) -> Iterator[str]:
    """The private names that a module takes from others: of their objects, by import, or by patching."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                pass
            case ast.Attribute(attr=name) if is_private(name):
                yield name
            case ast.ImportFrom(names=aliases):
                yield from (alias.name for alias in aliases if is_private(alias.name))
            case ast.Call(args=[_, ast.Constant(value=str(name)), *_]) if is_private(name):
                yield name


def naming(names: set[str], paths: Iterable[Path]) -> Iterator[Path]:
    """The modules whose text has one of the names: only these are worth parsing."""
    name = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    return (path for path in paths if name.search(path.read_text()))


@pytest.mark.slow
def test_tests_reach_into_no_private_name_of_the_kit_or_the_doubles() -> None:
    product = (path for folder in PRODUCT for path in (PROJECT / folder).rglob("*.py") if KIT not in path.parents)
    own = defined(path for folder in (KIT, DOUBLES) for path in folder.rglob("*.py"))
    own -= defined(naming(own, product))
    found = [
        f"{path.relative_to(PROJECT)}: {name}"
        for path in naming(own, sorted((PROJECT / "tests").rglob("*.py")))
        for name in reaches(path)
        if name in own
    ]
    assert found == []
