"""Converts the invocation of a tool, a route with a name, into a submission (`protocol §13`, tools).

REST, Model Context Protocol and Agent2Agent share this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Raw

from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable, Tool
from asya.protocol.strict_json import decode_exact, escape
from asya.tasks.starts.submission import Submission

# Validates arguments against a JSON Schema: (path, problem) for each problem; the path is like "flights" or "n[1]", "" for all.
Validate = Callable[[dict[str, object], Any], Sequence[tuple[str, str]]]

_FIELDS = ("name", "arguments")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


class InvalidArgumentsError(ApiError):
    """The arguments do not fit the tool's schema.

    Attributes:
        problems: (path, problem) for each problem.
    """

    def __init__(self, tool: str, problems: Sequence[tuple[str, str]]) -> None:
        path, problem = problems[0]
        field = f"arguments.{path}" if path else "arguments"
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(400, "invalid_arguments", f"{field} of {tool!r}: {problem}{more}", field)
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """The name of a tool, and the arguments for it."""

    name: str
    arguments: Raw


def read_invocation(body: bytes) -> ToolInvocation:
    """Read `{name, arguments?}`.

    Raises:
        ApiError: 400 with the field.
    """
    try:
        members = _object_decoder.decode(body)
    except msgspec.ValidationError:
        raise ApiError(400, "invalid_json", "the body must be a JSON object {name, arguments}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ApiError(400, "invalid_json", f"the body is not valid JSON: {error}") from None
    for name in members:
        if name not in _FIELDS:
            raise ApiError(400, "unknown_field", f"unknown field {name!r}; the fields are name and arguments", name)
    try:
        tool = msgspec.json.decode(members.get("name", b"null"), type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ApiError(400, "invalid_field", "name must be the name of a tool", "name") from None
    return ToolInvocation(tool, members.get("arguments", Raw(b"{}")))


def tool_submission(invocation: ToolInvocation, mesh: MeshTable, validate: Validate) -> Submission:
    """Build the submission: the tool's route and timeout, and the arguments as the payload.

    Raises:
        ApiError: 404 for an unknown tool, 400 for arguments that are not a JSON object.
        InvalidArgumentsError: the arguments do not fit the tool's schema.
    """
    tool = find_tool(invocation.name, mesh)
    arguments = _read_arguments(invocation.arguments)
    problems = validate(tool.input_schema, arguments)
    if problems:
        raise InvalidArgumentsError(invocation.name, problems)
    first, *rest = tool.route
    return Submission(
        actor=first,
        payload=Raw(escape(bytes(invocation.arguments))),
        headers={},
        timeout=timedelta(seconds=tool.timeout),
        next=tuple(rest),
        tool=invocation.name,
    )


def find_tool(name: str, mesh: MeshTable) -> Tool:
    """Find a tool by its name.

    Raises:
        ApiError: 404 for an unknown tool.
    """
    tool = mesh.tools.get(name)
    if tool is None:
        known = ", ".join(sorted(mesh.tools)) or "none"
        raise ApiError(404, "unknown_tool", f"unknown tool {name!r}; the tools are: {known}", "name")
    return tool


def _read_arguments(raw: Raw) -> dict[str, Any]:
    try:
        value = decode_exact(raw)
    except ValueError as error:
        raise ApiError(400, "invalid_json", f"arguments: {error}", "arguments") from None
    if not isinstance(value, dict):
        raise ApiError(400, "invalid_field", "arguments must be a JSON object", "arguments")
    return value
