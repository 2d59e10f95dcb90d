"""Reads tool calls, and answers to a pause, from Agent2Agent messages (`protocol §13`).

`tool` or `skill` names a tool: in a data part `{"tool": name, "arguments": {…}}`, or in the metadata of the message.
The only tool of a mesh needs no name. Every other data part holds arguments. A text is the one missing argument, or the
one missing answer, that takes a text. A message of a text alone is refused if there is no such argument or answer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Raw

from asya.capabilities.a2a.requests import CONTENT_TYPE_NOT_SUPPORTED, A2AError
from asya.capabilities.a2a.types import A2AMessage, MessagePart, Metadata
from asya.capabilities.a2a.versions import USER
from asya.capabilities.pauses.resume_input import Answers
from asya.gateway.json_rpc import INVALID_PARAMS
from asya.protocol.mesh_table import MeshTable, Tool
from asya.protocol.pause import PauseField
from asya.protocol.strict_json import decode_exact, decode_value, encode_exact, escape
from asya.tasks.starts.tools import ToolInvocation

_NAMES = ("tool", "skill")
_T = TypeVar("_T")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The content of a message.

    Attributes:
        tool: The name of the tool that it calls, if it names one.
        values: The members of its data parts.
        text: Its texts, joined by line breaks.
    """

    tool: str | None
    values: dict[str, Raw]
    text: str


def read_message(message: A2AMessage, request_metadata: Metadata | None = None) -> MessageContent:
    """Read the content of a message.

    Args:
        request_metadata: The metadata of the request; those of the message come first.

    Raises:
        A2AError: If the role, the id, or a part is invalid.
    """
    if message.role != USER:
        raise A2AError(INVALID_PARAMS, f"role is {message.role!r}; use {USER!r} for messages of a client", "role")
    if not message.message_id:
        raise A2AError(INVALID_PARAMS, "messageId is empty; give each message a unique id", "messageId")
    tool = _tool_name(message.metadata) or _tool_name(request_metadata)
    values: dict[str, Raw] = {}
    texts: list[str] = []
    for index, part in enumerate(message.parts):
        place = f"parts[{index}]"
        if part.text is not None:
            texts.append(part.text)
            continue
        members = _members(part, place)
        name = _called_tool(members, place)
        if name is not None:
            if tool not in (None, name):
                raise A2AError(
                    INVALID_PARAMS, f"the message calls both {tool!r} and {name!r}; call one tool per message", place
                )
            tool, members = name, _arguments(members, place)
        for member in members:
            if member in values:
                problem = f"two parts contain {member!r}; keep one of them"
                raise A2AError(INVALID_PARAMS, problem, f"{place}.data.{member}")
        values |= members
    return MessageContent(tool, values, "\n".join(texts))


def tool_invocation(content: MessageContent, mesh: MeshTable) -> ToolInvocation:
    """Return the tool call in a message; the tool's schema validates the arguments later.

    Raises:
        A2AError: If several tools exist and none is named, or no argument takes the text.
    """
    name = content.tool
    if name is None:
        if len(mesh.tools) != 1:
            known = ", ".join(sorted(mesh.tools)) or "none"
            problem = f'no skill is named; add a data part {{"skill": NAME, "arguments": {{…}}}} with one of: {known}'
            raise A2AError(INVALID_PARAMS, problem, "parts")
        [name] = mesh.tools
    tool = mesh.tools.get(name)
    arguments = dict(content.values)
    if tool is not None and content.text:
        argument = text_argument(tool, content.values)
        if argument is not None:
            arguments[argument] = _json_string(content.text)
        elif not content.values:
            problem = f"{name!r} has no single text argument; send its arguments as a data part that fits its schema"
            raise A2AError(CONTENT_TYPE_NOT_SUPPORTED, problem, "parts")
    return ToolInvocation(name, _json_object(arguments))


def text_argument(tool: Tool, present: Iterable[str] = ()) -> str | None:
    """Return the argument that a text stands for: the one missing text argument, of the required ones if there are any."""
    properties = tool.input_schema.get("properties")
    if not isinstance(properties, dict):
        return None
    required = tool.input_schema.get("required")
    texts = [
        name
        for name, schema in properties.items()
        if isinstance(schema, dict) and schema.get("type") == "string" and name not in present
    ]
    required_texts = [name for name in texts if isinstance(required, list) and name in required]
    return _single(required_texts) or (_single(texts) if not required_texts else None)


def read_answers(content: MessageContent, fields: Sequence[PauseField]) -> Answers:
    """Return the answers in a message to a pause; the resume validates them later.

    Raises:
        A2AError: If the message is a text and no single field takes it.
    """
    answers = dict(content.values)
    if not content.text:
        return answers
    field = _single(
        [field for field in fields if field.name not in answers and field.type in ("string", "number", "boolean")]
    )
    if field is not None:
        answers[field.name] = _value_of(content.text, field)
    elif not answers:
        names = ", ".join(field.name for field in fields) or "any names"
        problem = f"the text does not name its field; send a data part with the answers by name: {names}"
        raise A2AError(INVALID_PARAMS, problem, "parts")
    return answers


def _tool_name(metadata: Metadata | None) -> str | None:
    names = [metadata[name] for name in _NAMES if name in metadata] if metadata else []
    name = names[0] if names else None
    if name is not None and not isinstance(name, str):
        raise A2AError(INVALID_PARAMS, "tool must be the name of a tool", "metadata.tool")
    return name


def _members(part: MessagePart, place: str) -> dict[str, Raw]:
    if not isinstance(part.data, Raw):
        problem = "only text and data parts are supported; store a file with the mesh's data and send a reference to it"
        raise A2AError(CONTENT_TYPE_NOT_SUPPORTED, problem, place)
    try:
        decode_value(part.data)  # finds invalid values, such as numbers out of range
        return _object_decoder.decode(part.data)
    except (ValueError, msgspec.MsgspecError) as error:
        raise A2AError(INVALID_PARAMS, f"data must be a JSON object: {error}", f"{place}.data") from None


def _called_tool(members: dict[str, Raw], place: str) -> str | None:
    """Return the tool that a data part calls; None if the part holds only arguments."""
    names = [name for name in _NAMES if name in members]
    if len(names) != 1 or not members.keys() <= {*_NAMES, "arguments"}:
        return None
    name = msgspec.json.decode(members[names[0]])
    if not isinstance(name, str):
        raise A2AError(INVALID_PARAMS, f"{names[0]} must be the name of a tool", f"{place}.data.{names[0]}")
    return name


def _arguments(members: dict[str, Raw], place: str) -> dict[str, Raw]:
    try:
        return _object_decoder.decode(members.get("arguments", Raw(b"{}")))
    except msgspec.MsgspecError:
        raise A2AError(INVALID_PARAMS, "arguments must be a JSON object", f"{place}.data.arguments") from None


def _value_of(text: str, field: PauseField) -> Raw:
    """Return a text as the value of a field; a text of another type stays a string, which the resume refuses by name."""
    if field.type == "string":
        return _json_string(text)
    try:
        return encode_exact(decode_exact(text.strip().lower().encode()))
    except ValueError:
        return _json_string(text)


def _json_string(text: str) -> Raw:
    return Raw(escape(msgspec.json.encode(text)))


def _json_object(members: dict[str, Raw]) -> Raw:
    return Raw(msgspec.json.encode(members))


def _single(items: Sequence[_T]) -> _T | None:
    return items[0] if len(items) == 1 else None
