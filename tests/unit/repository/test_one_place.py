"""What is written in one place: how attributes look in DynamoDB, and how a function gets what it stands on."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import PROJECT

LIBRARY = PROJECT / "functions" / "asya"
ATTRIBUTE = re.compile(r'\{"(?:S|N|B|BOOL|M|L|SS|NS|NULL)":')
REQUEST = re.compile(r"ExpressionAttribute|ConditionExpression|TransactItems|UnprocessedKeys|UnprocessedItems")
# The objects that functions share, and who builds them.
BUILT_BY = {
    "Tasks": ["tasks/aws/stored_tasks.py"],
    "DynamoTaskStore": ["tasks/aws/stored_tasks.py"],
    "TaskIndex": ["tasks/aws/stored_tasks.py"],
    # The command has no function.
    "ClaimCheck": ["client/resources.py", "function/lambdas/function.py", "sidecar/lambdas/services.py"],
}


def modules() -> Iterator[Path]:
    """The modules that are deployed: the test kit has a double of DynamoDB itself."""
    return (path for path in LIBRARY.rglob("*.py") if "testing" not in path.relative_to(LIBRARY).parts)


def name_of(path: Path) -> str:
    return path.relative_to(LIBRARY).as_posix()


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [(ATTRIBUTE, {"function/aws/table_items.py"}), (REQUEST, {"function/aws/table.py"})],
    ids=["attributes", "requests"],
)
def test_one_module_speaks_the_language_of_dynamodb(pattern: re.Pattern[str], allowed: set[str]) -> None:
    found = {name_of(path) for path in modules() if pattern.search(path.read_text(encoding="utf-8"))}
    assert found == allowed


@pytest.mark.parametrize("built", BUILT_BY)
def test_a_shared_object_is_built_in_one_place(built: str) -> None:
    places = {
        name_of(path)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == built
    }
    assert sorted(places) == BUILT_BY[built]
