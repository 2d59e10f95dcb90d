"""`docs/reference/errors.md` has a row for each reason, type of error, problem and code that the product gives."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from asya.capabilities.a2a.routes.calls import REASONS as RPC_REASONS
from asya.capabilities.mcp import types as mcp_types
from asya.client import errors as client_errors
from asya.function.aws.outbox import REFUSALS
from asya.gateway import json_rpc
from asya.protocol.api_errors import ERROR_CODES
from asya.protocol.status import REASONS
from tests.paths import PROJECT
from tests.unit.repository.test_docs import parse
from tests.unit.repository.test_error_codes import answered, documented

PAGE = (PROJECT / "docs" / "reference" / "errors.md").read_text()
ROW = re.compile(r"^\| (`[^|]*`) \|(.*)\|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
LIBRARY, JOB_LIBRARY = PROJECT / "functions" / "asya", PROJECT / "spark_jobs" / "asya_spark"
# The code that runs around that of a user: what it raises reaches an envelope.
AROUND_USER_CODE = (LIBRARY / "runtime", LIBRARY / "contracts", JOB_LIBRARY)


def rows(heading: str) -> dict[str, str]:
    """The rest of each row of a section by the names in its first column."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {name: rest for names, rest in ROW.findall(section) for name in CODE.findall(names)}


def modules(*folders: Path) -> Iterator[ast.Module]:
    for folder in folders:
        for path in folder.rglob("*.py"):
            if "testing" not in path.parts:
                yield ast.parse(path.read_text())


def made_types() -> Iterator[str]:
    """The types of errors that the mesh writes itself: literals, and constants of the same module."""
    for module in modules(LIBRARY, JOB_LIBRARY):
        constants = {
            node.targets[0].id: node.value.value
            for node in module.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                match node.func.id, node.args, {word.arg: word.value for word in node.keywords}:
                    case ("ErrorInfo", _, {"type": ast.Constant(value=str(name))}) | (
                        "JobError",
                        [ast.Constant(value=str(name)), *_],
                        _,
                    ):
                        yield name
                    case "ErrorInfo", _, {"type": ast.Name(id=constant)} if constant in constants:
                        yield str(constants[constant])


def raised_types() -> Iterator[str]:
    """The public exceptions around user code."""
    for module in modules(*AROUND_USER_CODE):
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and not node.name.startswith("_"):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                if any(base.endswith(("Error", "Exception")) for base in bases):
                    yield node.name


def test_each_reason_has_a_row() -> None:
    assert set(rows("Reasons of a task")) == REASONS


@pytest.mark.slow
def test_each_type_of_error_has_a_row() -> None:
    types = {*made_types(), *raised_types()}
    assert {"processing_error", "SparkJobFailed", "TableError"} <= types
    assert sorted(types - set(rows("Types of errors"))) == []


def test_each_problem_has_a_row() -> None:
    assert set(rows("Problems of a task")) == REFUSALS


def test_each_code_of_the_gateway_has_a_row_with_its_statuses() -> None:
    assert set(rows("Codes of the gateway")) == ERROR_CODES
    statuses = {
        (int(status), code)
        for code, rest in rows("Codes of the gateway").items()
        for status in re.findall(r"\d{3}", rest.partition("|")[0])
    }
    assert set(answered()) <= statuses <= documented()


def test_each_code_of_json_rpc_has_a_row_with_its_reason() -> None:
    names = {**vars(json_rpc), **vars(mcp_types)}
    codes = {value for name, value in names.items() if name.isupper() and isinstance(value, int) and value < 0}
    table = rows("Codes of JSON-RPC")
    assert {int(code) for code in table} == codes | set(RPC_REASONS)
    assert {int(code): CODE.findall(rest)[0] for code, rest in table.items() if int(code) in RPC_REASONS} == RPC_REASONS


def test_each_exception_of_the_client_has_a_row() -> None:
    names = {
        name for name, value in vars(client_errors).items() if isinstance(value, type) and issubclass(value, Exception)
    }
    assert set(rows("Exceptions of the Python client")) == names


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`asya ([^`]+)`", PAGE))))
def test_what_to_type_parses(command: str) -> None:
    parse(shlex.split(command))
