"""A tool is a route with a name: calling one starts a task on it (`protocol §13`, tools).

Whoever asks, in whatever protocol, comes through here: plain REST, Model Context Protocol, Agent2Agent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Raw

from asya.gateway.submission import Submission
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable, Tool
from asya.protocol.strict_json import decode_value, escape

# Gives, for a JSON Schema and some arguments, what is wrong with them: where ("flights", "n[1]"; "" for all), and what.
Validate = Callable[[dict[str, object], Any], Sequence[tuple[str, str]]]

_FIELDS = ("name", "arguments")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


class InvalidArgumentsError(ApiError):
    """The arguments do not fit the tool's schema.

    Attributes:
        problems: where, and what, one by one.
    """

    def __init__(self, tool: str, problems: Sequence[tuple[str, str]]) -> None:
        place, problem = problems[0]
        field = f"arguments.{place}" if place else "arguments"
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(400, "invalid_arguments", f"{field} of {tool!r}: {problem}{more}", field)
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """Which tool is called, with what."""

    name: str
    arguments: Raw


def read_request(body: bytes) -> ToolInvocation:
    """Read `{name, arguments?}`.

    Raises:
        ApiError: 400 naming the field.
    """
    try:
        members = _object_decoder.decode(body)
    except msgspec.ValidationError:
        raise ApiError(400, "invalid_json", "the body must be a JSON object {name, arguments}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None
    for name in members:
        if name not in _FIELDS:
            raise ApiError(400, "unknown_field", f"there is no field {name!r}; there are name, arguments", name)
    try:
        tool = msgspec.json.decode(members.get("name", b"null"), type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ApiError(400, "invalid_field", "name must be the name of a tool", "name") from None
    return ToolInvocation(tool, members.get("arguments", Raw(b"{}")))


def tool_submission(asked: ToolInvocation, mesh: MeshTable, validate: Validate) -> Submission:
    """What a call starts: the tool's whole route, with the arguments as payload and the tool's time.

    Raises:
        ApiError: 404 for an unknown tool, 400 for arguments that are no JSON object.
        InvalidArgumentsError: if they do not fit the tool's schema.
    """
    tool = find_tool(asked.name, mesh)
    arguments = _read_arguments(asked.arguments)
    problems = validate(tool.input_schema, arguments)
    if problems:
        raise InvalidArgumentsError(asked.name, problems)
    first, *rest = tool.route
    return Submission(
        actor=first,
        payload=Raw(escape(bytes(asked.arguments))),
        headers={},
        timeout=timedelta(seconds=tool.timeout),
        next=tuple(rest),
    )


def find_tool(name: str, mesh: MeshTable) -> Tool:
    """A tool.

    Raises:
        ApiError: 404 if the mesh has none of this name.
    """
    tool = mesh.tools.get(name)
    if tool is None:
        known = ", ".join(sorted(mesh.tools)) or "none"
        raise ApiError(404, "unknown_tool", f"there is no tool {name!r}; there are: {known}", "name")
    return tool


def _read_arguments(raw: Raw) -> dict[str, Any]:
    try:
        value = decode_value(raw)
    except ValueError as error:
        raise ApiError(400, "invalid_json", f"arguments: {error}", "arguments") from None
    if not isinstance(value, dict):
        raise ApiError(400, "invalid_field", "arguments must be a JSON object", "arguments")
    return value
