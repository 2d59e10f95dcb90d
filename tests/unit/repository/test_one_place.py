"""What is written in one place: how attributes look in DynamoDB, how a function gets what it stands on, the words for states."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeGuard, get_args, get_origin

import pytest

from asya.protocol import states
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


@cache
def calls() -> list[tuple[str, str]]:
    """The modules with the names that they call."""
    return [
        (name_of(path), node.func.id)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [(ATTRIBUTE, {"function/aws/table_items.py"}), (REQUEST, {"function/aws/table.py"})],
    ids=["attributes", "requests"],
)
def test_one_module_speaks_the_language_of_dynamodb(pattern: re.Pattern[str], allowed: set[str]) -> None:
    found = {name_of(path) for path in modules() if pattern.search(path.read_text(encoding="utf-8"))}
    assert found == allowed


@pytest.mark.slow
@pytest.mark.parametrize("built", BUILT_BY)
def test_a_shared_object_is_built_in_one_place(built: str) -> None:
    places = {module for module, called in calls() if called == built}
    assert sorted(places) == BUILT_BY[built]


STATES = frozenset(value for name, value in vars(states).items() if name.isupper() and isinstance(value, str))
CODE = [PROJECT / folder for folder in ("functions", "asya_cli", "spark_jobs", "infra", "docs_site")]
"""Production code; the templates of `asya init` hold tests of their own."""
QUOTED_STATE = re.compile(rf"""(["'])({"|".join(STATES)})\1""")
# Words of other vocabularies that are letters of a state too.
OTHER_WORDS = {
    "asya_cli/actors.py": "headings of a table",
    "asya_cli/backfill/display.py": "headings of a table",
    "asya_cli/job/show.py": "labels of facts",
    "asya_cli/report/command.py": "headings of a table",
    "asya_cli/run/report.py": "the end of a local run",
    "asya_cli/smoke": "the state of a step of `asya smoke`",
    "asya_cli/tasks/report.py": "labels of facts",
    "asya_cli/triggers/tables.py": "labels of facts",
    "functions/asya/api_call.py": "the name of a parameter",
    "functions/asya/capabilities/fan_in/sets.py": "the type of a decision about a set",
    "functions/asya/capabilities/legacy/tasks.py": "the types of the legacy statuses",
    "functions/asya/client/mesh.py": "the name of a filter",
    "functions/asya/gateway/lambdas/openapi.py": "a description",
    "functions/asya/gateway/operations/failures.py": "the name of a parameter",
    "functions/asya/tasks/listing.py": "the name of a parameter",
    "functions/asya/gateway/aws/ends_queue.py": "a delay that is unknown",
    "functions/asya/gateway/ends_delay.py": "a delay that is unknown",
    "functions/asya/heavy/aws/dispatch_requests.py": "the name of an attribute",
    "functions/asya/heavy/aws/start_limits.py": "the name of an attribute",
    "functions/asya/heavy/manifest.py": "labels of the dashboard",
    "functions/asya/heavy/results.py": "the type of the outcome of a result",
    "functions/asya/heavy/run_failures.py": "the type of what becomes of the envelopes of a failed run",
    "functions/asya/light/manifest.py": "a label of the dashboard",
    "functions/asya/protocol/api_errors.py": "codes of errors",
    "functions/asya/protocol/hops.py": "the type of the stages of a hop",
    "functions/asya/protocol/job_runs.py": "the reasons to close a run",
    "functions/asya/protocol/keys.py": "a place that is unknown",
    "functions/asya/protocol/names.py": "the kind of a table",
    "functions/asya/protocol/table_keys.py": "names of an index and of an attribute",
    "functions/asya/sidecar/aws/circuit_breaker.py": "the type of what a circuit breaker counts",
    "functions/asya/tasks/aws/index.py": "the type of the partitions of an index",
    "functions/asya/tasks/aws/items.py": "the name of an attribute",
    "functions/handlers": "a sample, which has its own words",
    "infra/asya_infra/deployment/dispatcher.py": "the state of an event source",
    "infra/asya_infra/imports/importer.py": "the kind of a finding",
    "infra/asya_infra/mesh_file": "keys of the mesh file and of its legacy form",
    "infra/asya_local/dev": "keys of an answer",
    "infra/asya_local/single_calls/handler_runner.py": "the key of a report",
    "spark_jobs/asya_spark/main.py": "keys of a progress",
    "spark_jobs/asya_spark/heartbeat.py": "keys of a progress",
    "spark_jobs/flights": "a sample, which has its own words",
}


def literals(path: Path) -> Iterator[str]:
    """The string literals of a module, without the codes of errors."""
    source = path.read_text(encoding="utf-8")
    if QUOTED_STATE.search(source) is None:
        return
    tree = ast.parse(source)
    codes = {id(node.args[1]) for node in ast.walk(tree) if is_api_error(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in codes:
            yield node.value


def is_api_error(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether code makes an error with a literal code, which `test_error_codes` holds."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ApiError"


def test_a_state_is_written_once() -> None:
    """Only `protocol.states` spells the states; all others use its constants, or what it says about them."""
    found = {
        path.relative_to(PROJECT).as_posix(): words
        for folder in CODE
        for path in folder.rglob("*.py")
        if "templates" not in path.parts and (words := STATES & set(literals(path)))
    }
    assert found.pop("functions/asya/protocol/states.py") == STATES
    assert {name: words for name, words in found.items() if not any(map(name.startswith, OTHER_WORDS))} == {}
    assert [known for known in OTHER_WORDS if not any(name.startswith(known) for name in found)] == []


def test_pauses_are_written_in_one_place_of_the_console() -> None:
    """The compiler checks the words of the console against the types that are generated from the calls."""
    sources = PROJECT / "console" / "src"
    found = [
        path for path in sources.rglob("*.ts*") if re.search(r"""["']paused["']""", path.read_text(encoding="utf-8"))
    ]
    assert {path.relative_to(sources).as_posix() for path in found} == {"api/gateway.ts", "api/types.ts"}


def test_each_word_of_a_state_has_a_constant() -> None:
    types = [kind for kind in vars(states).values() if get_origin(kind) is Literal]
    assert {word for kind in types for word in get_args(kind)} == STATES
