"""Requests to start a tool: each part that is wrong is named."""

from typing import Any

import pytest
from msgspec import Raw

from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import Actor, MeshTable, Tool
from asya.starts.tools import ToolInvocation, tool_submission

MESH = MeshTable(
    namespace="shop",
    actors={"greet": Actor(kind="handler"), "bill": Actor(kind="handler")},
    tools={"order": Tool(description="", route=("greet", "bill"), input_schema={}, timeout=60.0)},
)


def start(arguments: bytes, name: str = "order") -> Any:
    return tool_submission(ToolInvocation(name, Raw(arguments)), MESH, lambda *_: [])


def test_arguments_are_the_payload_of_the_route() -> None:
    submission = start('{"who":"Ærø"}'.encode())
    assert (submission.actor, submission.next, submission.tool) == ("greet", ("bill",), "order")
    assert bytes(submission.payload) == b'{"who":"\\u00c6r\\u00f8"}'


@pytest.mark.parametrize(
    ("arguments", "code"), [(b"{", "invalid_json"), (b"[1]", "invalid_field"), (b"null", "invalid_field")]
)
def test_arguments_of_another_form_are_refused(arguments: bytes, code: str) -> None:
    with pytest.raises(ApiError, match="arguments") as caught:
        start(arguments)
    assert (caught.value.status, caught.value.code, caught.value.field) == (400, code, "arguments")
