"""Tables and prefixes are declared once, by the capability that owns them."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from asya import registry
from asya.needs import Items, Keys, Need, Objects
from tests.paths import PROJECT

CODE = ("functions/asya", "infra", "asya_cli")
CONSTANTS = {f"functions/asya/{module}.py" for module in ("protocol/keys", "protocol/job_runs", "ends/results")}
DECLARED = registry.PRODUCT.capabilities
NEEDS: list[Need] = [need for capability in DECLARED for function in capability.functions for need in function.needs]


def owned(prefix: str) -> bool:
    """Whether keys of the mesh's bucket that begin so belong to a capability."""
    return any(prefix.startswith(each.name) for each in registry.PRODUCT.prefixes if each.store == "bucket")


def test_every_table_and_every_prefix_has_one_owner() -> None:
    tables = Counter(table.name for capability in DECLARED for table in capability.tables)
    prefixes = Counter((each.store, each.name) for capability in DECLARED for each in capability.prefixes)
    assert set(tables.values()) == {1}
    assert set(prefixes.values()) == {1}


def test_functions_need_declared_tables_and_prefixes_only() -> None:
    assert {need.table for need in NEEDS if isinstance(need, Items)} == set(registry.PRODUCT.tables)
    objects = [need for need in NEEDS if isinstance(need, Objects | Keys) and need.store == "bucket"]
    assert [key for need in objects for key in need.keys if not owned(key)] == []


def test_indexes_that_functions_need_exist() -> None:
    for need in NEEDS:
        if isinstance(need, Items):
            assert set(need.indexes) <= {index.name for index in registry.PRODUCT.tables[need.table].indexes}


@pytest.mark.parametrize("kept", ["payloads", "runs"])
def test_the_protocol_says_how_long_objects_are_kept(kept: str) -> None:
    text = (PROJECT / "docs/protocol.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| (`\w+/.*?) \| .* \| `retention\.{kept}` \|$", text, re.MULTILINE)
    prefixes = {each.name for each in registry.PRODUCT.prefixes if each.kept == kept}
    keys = [key for cell in rows for key in re.findall(r"`([^`]+)`", cell)]
    assert {next((each for each in prefixes if key.startswith(each)), key) for key in keys} == prefixes


def literals(file: Path) -> Iterator[str]:
    """The texts in a module, without its docstrings."""
    tree = ast.parse(file.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


@pytest.mark.parametrize("folder", CODE)
@pytest.mark.slow
def test_no_prefix_is_written_a_second_time(folder: str) -> None:
    begins = tuple(each.name for each in registry.PRODUCT.prefixes if each.name)
    files = [file for file in (PROJECT / folder).rglob("*.py") if str(file.relative_to(PROJECT)) not in CONSTANTS]
    assert files
    assert [(str(file), text) for file in files for text in literals(file) if text.startswith(begins)] == []
