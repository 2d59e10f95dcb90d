"""Manifests declare the functions of the mesh, so no other module of the product lists them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from asya import registry
from asya.capabilities.dead_letters.letters import SYSTEM_QUEUES
from asya.protocol import names
from tests.paths import PROJECT

FUNCTIONS = {
    *registry.PRODUCT.functions,
    *registry.PRODUCT.steps,
    *registry.PRODUCT.own_queues,
    *names.SYSTEM_FUNCTIONS,
}
CONSTANTS = {name for name, value in vars(names).items() if isinstance(value, str) and value in FUNCTIONS}
_DECLARATIONS = ("manifest.py", "statements.py")
A_LIST = 3
"""So many functions in one collection are a list of them."""
DIFFERENT = {
    "functions/asya/capabilities/dead_letters/letters.py": "read by functions, which import no manifest; a test compares it",
    "functions/asya/capabilities/operations/log_lines.py": "whose lines tell how envelopes end",
    "functions/asya/senders/envelopes.py": "a part of the statements of several capabilities",
}


_NAME = re.compile(
    rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(FUNCTIONS | CONSTANTS, key=len, reverse=True)))})(?![\w-])"
)


def collections(tree: ast.Module) -> Iterator[set[str]]:
    """Yield the functions that each tuple, list, set and dictionary names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            yield set(members(node))


def members(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Starred):
        yield from members(node.value)
    elif isinstance(node, ast.Dict):
        for key in node.keys:
            yield from members(key) if key is not None else ()
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from members(each)
    elif isinstance(node, ast.Attribute) and node.attr in CONSTANTS:
        yield node.attr
    elif isinstance(node, ast.Constant) and node.value in FUNCTIONS:
        yield str(node.value)


def lists(folder: Path) -> set[str]:
    """Return the modules with a collection of several functions; declarations may have one."""
    return {
        str(path.relative_to(folder))
        for part in ("functions", "infra", "asya_cli", "spark_jobs")
        for path in (folder / part).rglob("*.py")
        if path.name not in _DECLARATIONS
        if has_a_list(path.read_text(encoding="utf-8"))
    }


def has_a_list(text: str) -> bool:
    if len(set(_NAME.findall(text))) < A_LIST:  # parsing takes longer
        return False
    return any(len(named) >= A_LIST for named in collections(ast.parse(text)))


@pytest.mark.slow
def test_no_module_lists_the_functions_again() -> None:
    assert lists(PROJECT) == DIFFERENT.keys()


def test_a_list_is_found(tmp_path: Path) -> None:
    module = tmp_path / "functions" / "again.py"
    module.parent.mkdir()
    module.write_text("ALL = (*('x-sink', 'x-dlq'), names.REPORTS)\nTWO = {names.SINK: 1, names.SUMP: 2}\n")
    assert lists(tmp_path) == {"functions/again.py"}
    module.write_text("TWO = {names.SINK: 1, names.SUMP: 2}\n")
    assert lists(tmp_path) == set()


def test_the_dlq_function_knows_every_queue_without_an_actor() -> None:
    """Their letters are requests and events, which end no envelope. Nothing ends a letter of x-push or of reports."""
    ended_by_nobody = {names.PUSH, *names.REPORT_QUEUES}
    queues = set(registry.PRODUCT.own_queues) - {
        *registry.PRODUCT.crew,
        *registry.PRODUCT.crew_of_kinds,
        *registry.PRODUCT.on_demand,
    }
    assert set(SYSTEM_QUEUES) == queues - ended_by_nobody
