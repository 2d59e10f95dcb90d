"""The requests of the client, from the declarations of calls; no path stands anywhere else."""

import ast

import pytest

from asya.client.calls import to
from asya.gateway.call_table import CALLS
from asya.tasks.http_calls import CANCEL, KEPT_HOP, TASKS
from tests.paths import PROJECT


def test_a_request_has_the_method_and_the_path_of_its_call() -> None:
    assert to(CANCEL, id="env-1") == ("DELETE", "/api/v1/mesh/env-1")
    assert to(KEPT_HOP, id="a/../b ?", hop="3") == ("GET", "/api/v1/mesh/a%2F..%2Fb%20%3F/payloads/3")


def test_a_query_is_encoded() -> None:
    assert to(TASKS, {"error": "a&b", "limit": "3"}) == ("GET", "/api/v1/mesh?error=a%26b&limit=3")
    assert to(TASKS, {}) == to(TASKS) == ("GET", "/api/v1/mesh")


def test_a_variable_of_the_path_may_not_be_missing() -> None:
    with pytest.raises(KeyError, match="hop"):
        to(KEPT_HOP, id="env-1")


@pytest.mark.parametrize("package", ["functions/asya/client", "functions/asya/testing", "asya_cli"])
def test_no_path_of_a_call_is_typed_again(package: str) -> None:
    starts = {"/".join(call.path.split("/")[:3]).partition("/{")[0] for call in CALLS}
    typed = [
        f"{path.relative_to(PROJECT)}:{node.lineno}"
        for path in (PROJECT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(tuple(starts))
    ]
    assert typed == []
