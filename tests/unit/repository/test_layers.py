"""The layers of the library: `lambdas → aws, routing, runtime → protocol`; `protocol` and `routing` are pure.

Read off the imports, so that a dependency in the wrong direction fails here before it grows roots.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.paths import PROJECT

FUNCTIONS = PROJECT / "functions"
PACKAGE = FUNCTIONS / "asya"

# What each layer may import of the library. `aws` carries out what `routing` decided, so it knows its plain data.
BELOW: dict[str, frozenset[str]] = {
    "protocol": frozenset({"protocol"}),
    "routing": frozenset({"protocol", "routing"}),
    "runtime": frozenset({"protocol", "runtime"}),
    "aws": frozenset({"protocol", "routing", "aws"}),
    "lambdas": frozenset({"protocol", "routing", "runtime", "aws", "lambdas"}),
}
PURE = ("protocol", "routing")
# Everything else a pure layer may import: no clock, no randomness, no input or output, no AWS.
ALLOWED_IN_PURE = frozenset(
    {
        "__future__",
        "base64",
        "bisect",
        "collections",
        "collections.abc",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "enum",
        "functools",
        "hashlib",
        "hmac",
        "ipaddress",
        "itertools",
        "json",
        "math",
        "msgspec",
        "msgspec.json",
        "msgspec.structs",
        "re",
        "shlex",
        "string",
        "traceback",
        "typing",
        "urllib.parse",
        "uuid",
    }
)
# Of modules that are not pure, what is.
PURE_NAMES = frozenset({("os.path", ("commonprefix",))})
# Calls that read the clock or make something up, although the module they come from is allowed.
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "uuid1", "uuid4", "open", "getenv", "print", "input"})
NO_USER_CODE = frozenset({"boto3", "botocore", "urllib3", "aws_lambda_powertools"})


@dataclass(frozen=True)
class Import:
    """One import statement's module, and where it stands."""

    file: Path
    line: int
    module: str
    names: tuple[str, ...] = ()

    @property
    def layer(self) -> str:
        """The layer of the file that imports."""
        parts = self.file.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else ""

    @property
    def target(self) -> str:
        """The layer of the library that is imported; empty for other modules."""
        parts = self.module.split(".")
        if parts[0] != "asya":
            return ""
        return parts[1] if len(parts) > 1 else (self.names or ("",))[0]

    def __str__(self) -> str:
        return f"{self.file.relative_to(FUNCTIONS)}:{self.line} imports {self.module}"


@cache
def modules() -> dict[Path, tuple[ast.AST, ...]]:
    """Every module of the library, and all nodes of its syntax tree."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
    return {path: tuple(ast.walk(ast.parse(path.read_text(), str(path)))) for path in paths}


def imports(path: Path) -> Iterator[Import]:
    for node in modules()[path]:
        if isinstance(node, ast.Import):
            yield from (Import(path, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield Import(path, node.lineno, node.module or "", tuple(alias.name for alias in node.names))


def all_imports() -> list[Import]:
    return [found for path in modules() for found in imports(path)]


def test_the_tree_has_the_layers_it_is_known_for() -> None:
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(BELOW)


def test_every_import_points_down() -> None:
    wrong = [
        str(found)
        for found in all_imports()
        if found.layer in BELOW and found.target in BELOW and found.target not in BELOW[found.layer]
    ]
    assert wrong == []


def test_pure_layers_import_nothing_with_a_clock_chance_or_the_outside_world() -> None:
    wrong = [
        str(found)
        for found in all_imports()
        if found.layer in PURE
        and not found.target
        and found.module not in ALLOWED_IN_PURE
        and (found.module, found.names) not in PURE_NAMES
    ]
    assert wrong == []


def test_pure_layers_read_no_clock_and_make_nothing_up() -> None:
    wrong = []
    for path, nodes in modules().items():
        if path.relative_to(PACKAGE).parts[0] not in PURE:
            continue
        for node in nodes:
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in IMPURE_CALLS:
                    wrong.append(f"{path.relative_to(FUNCTIONS)}:{node.lineno} calls {name}()")
            elif isinstance(node, ast.ImportFrom) and IMPURE_CALLS & {alias.name for alias in node.names}:
                wrong.append(f"{path.relative_to(FUNCTIONS)}:{node.lineno} imports such a function")
    assert wrong == []


def test_the_runtime_knows_no_aws() -> None:
    wrong = [
        str(found) for found in all_imports() if found.layer == "runtime" and found.module.split(".")[0] in NO_USER_CODE
    ]
    assert wrong == []


def test_nothing_of_the_library_needs_the_rest_of_the_repository() -> None:
    others = {"infra", "asya_cli", "asya_spark", "tests", "flights", "aws_cdk", "pyspark"}
    assert [str(found) for found in all_imports() if found.module.split(".")[0] in others] == []


@pytest.mark.parametrize(
    ("layer", "target", "points_down"),
    [
        ("routing", "protocol", True),
        ("routing", "runtime", False),
        ("protocol", "routing", False),
        ("runtime", "aws", False),
    ],
)
def test_the_rule_itself(layer: str, target: str, points_down: bool) -> None:
    assert (target in BELOW[layer]) is points_down
