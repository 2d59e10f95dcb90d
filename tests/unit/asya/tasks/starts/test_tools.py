"""Requests to start a tool: each part that is wrong is named."""

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import Actor, MeshTable, Tool
from asya.tasks.starts.tool_schemas import validate
from asya.tasks.starts.tools import InvalidArgumentsError, ToolInvocation, tool_submission

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


@pytest.mark.rule("6.typed.schema")
@pytest.mark.parametrize(
    ("number", "is_whole", "is_small"),
    [
        ("9007199254740993.5", False, False),
        ("9007199254740993.0", True, False),
        ("9007199254740992.0", True, True),
        ("1e-400", False, True),
        ("1e-999999999", False, True),
        ("-1e-99999999999999999999", False, True),
        ("0e99999999999999999999", True, True),
    ],
)
def test_numbers_are_validated_by_their_texts(number: str, is_whole: bool, is_small: bool) -> None:
    def problems(schema: dict[str, Any]) -> list[str]:
        tool = replace(MESH.tools["order"], input_schema={"properties": {"n": {"items": schema}}})
        invocation = ToolInvocation("order", Raw(f'{{"n": [{number}]}}'.encode()))
        try:
            tool_submission(invocation, replace(MESH, tools={"order": tool}), validate)
        except InvalidArgumentsError as error:
            return [path for path, _ in error.problems]
        return []

    assert problems({"type": "integer"}) == ([] if is_whole else ["n[0]"])
    assert problems({"type": "number", "maximum": 2**53}) == ([] if is_small else ["n[0]"])
