"""What an Agent2Agent message asks for: which tool, with which arguments; or the answers to what a pause asks (`protocol §13`).

A tool is named by `tool` or `skill`, in a data part `{"tool": name, "arguments": {…}}` or in the metadata of the message; where a
mesh has one tool only, it needs no name. Every other data part gives arguments. A text is the one argument, or the one answer,
that is a text and still missing; where there is no such place and nothing else is said, the message is refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Raw

from asya.gateway.a2a.requests import CONTENT_TYPE_NOT_SUPPORTED, A2AError
from asya.gateway.a2a.types import Message, Metadata, Part
from asya.gateway.json_rpc import INVALID_PARAMS
from asya.gateway.tools import ToolInvocation
from asya.pause.resume_input import Answers
from asya.protocol.mesh_table import MeshTable, Tool
from asya.protocol.pause import PauseField
from asya.protocol.strict_json import decode_value, escape

_NAMES = ("tool", "skill")
T = TypeVar("T")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


@dataclass(frozen=True, slots=True)
class MessageContent:
    """What a message holds.

    Attributes:
        tool: the name it calls, if it does.
        values: what its data parts say, by name.
        text: its texts, one below the other; empty if it has none.
    """

    tool: str | None
    values: dict[str, Raw]
    text: str


def read_message(message: Message, users_role: str, more: Metadata | None = None) -> MessageContent:
    """What a message says.

    Args:
        users_role: the word for those who send messages.
        more: metadata of the request, beside those of the message.

    Raises:
        A2AError: if it is from somebody else, says nothing, or holds what nobody reads.
    """
    if message.role != users_role:
        raise A2AError(INVALID_PARAMS, f"role is {message.role!r}; a client's messages have {users_role!r}", "role")
    if not message.message_id:
        raise A2AError(INVALID_PARAMS, "messageId is empty; each message has one of its own", "messageId")
    tool = _named(message.metadata) or _named(more)
    values: dict[str, Raw] = {}
    texts: list[str] = []
    for index, part in enumerate(message.parts):
        place = f"parts[{index}]"
        if part.text is not None:
            texts.append(part.text)
            continue
        members = _members(part, place)
        called = _call(members, place)
        if called is not None:
            if tool not in (None, called):
                raise A2AError(INVALID_PARAMS, f"the message calls both {tool!r} and {called!r}", place)
            tool, members = called, _arguments(members, place)
        for name in members:
            if name in values:
                raise A2AError(INVALID_PARAMS, f"{name!r} is said in two parts", f"{place}.data.{name}")
        values |= members
    return MessageContent(tool, values, "\n".join(texts))


def tool_request(said: MessageContent, mesh: MeshTable) -> ToolInvocation:
    """The call of a tool that a message asks for; whether its arguments fit is for the tool's schema to say.

    Raises:
        A2AError: if no tool is named and there are several, or a text has no place in its arguments.
    """
    name = said.tool
    if name is None:
        if len(mesh.tools) != 1:
            known = ", ".join(sorted(mesh.tools)) or "none"
            problem = (
                f'say which skill is meant, by a data part {{"skill": NAME, "arguments": {{…}}}}; there are: {known}'
            )
            raise A2AError(INVALID_PARAMS, problem, "parts")
        [name] = mesh.tools
    tool = mesh.tools.get(name)
    arguments = dict(said.values)
    if tool is not None and said.text:
        argument = text_argument(tool, said.values)
        if argument is not None:
            arguments[argument] = _quoted(said.text)
        elif not said.values:
            problem = (
                f"{name!r} takes no plain text: send its arguments as a data part; they are described by its schema"
            )
            raise A2AError(CONTENT_TYPE_NOT_SUPPORTED, problem, "parts")
    return ToolInvocation(name, _object(arguments))


def text_argument(tool: Tool, given: Iterable[str] = ()) -> str | None:
    """The argument that a plain text is: the one that has to be a text and is missing, or else the one that can be."""
    properties = tool.input_schema.get("properties")
    if not isinstance(properties, dict):
        return None
    required = tool.input_schema.get("required")
    texts = [
        name
        for name, schema in properties.items()
        if isinstance(schema, dict) and schema.get("type") == "string" and name not in given
    ]
    needed = [name for name in texts if isinstance(required, list) and name in required]
    return _only(needed) or (_only(texts) if not needed else None)


def answers(said: MessageContent, fields: Sequence[PauseField]) -> Answers:
    """What a message answers to what a pause asks; whether it fits is checked where a resume is.

    Raises:
        A2AError: if a text answers nothing in particular and nothing else is said.
    """
    found = dict(said.values)
    if not said.text:
        return found
    field = _only(
        [field for field in fields if field.name not in found and field.type in ("string", "number", "boolean")]
    )
    if field is not None:
        found[field.name] = _value_of(said.text, field)
    elif not found:
        asked = ", ".join(field.name for field in fields) or "any names"
        problem = f"which answer is the text? Send a data part with the answers by name: {asked}"
        raise A2AError(INVALID_PARAMS, problem, "parts")
    return found


def _named(metadata: Metadata | None) -> str | None:
    found = [metadata[name] for name in _NAMES if name in metadata] if metadata else []
    name = found[0] if found else None
    if name is not None and not isinstance(name, str):
        raise A2AError(INVALID_PARAMS, "tool is the name of a tool", "metadata.tool")
    return name


def _members(part: Part, place: str) -> dict[str, Raw]:
    if not isinstance(part.data, Raw):
        problem = "texts and data are understood; put a file where the mesh's data is and send the reference to it"
        raise A2AError(CONTENT_TYPE_NOT_SUPPORTED, problem, place)
    try:
        decode_value(part.data)  # numbers out of range and the like show only when they are read
        return _object_decoder.decode(part.data)
    except (ValueError, msgspec.MsgspecError) as error:
        raise A2AError(INVALID_PARAMS, f"data is a JSON object: {error}", f"{place}.data") from None


def _call(members: dict[str, Raw], place: str) -> str | None:
    """The tool that a data part calls; None if it holds arguments only."""
    names = [name for name in _NAMES if name in members]
    if len(names) != 1 or not members.keys() <= {*_NAMES, "arguments"}:
        return None
    name = msgspec.json.decode(members[names[0]])
    if not isinstance(name, str):
        raise A2AError(INVALID_PARAMS, f"{names[0]} is the name of a tool", f"{place}.data.{names[0]}")
    return name


def _arguments(members: dict[str, Raw], place: str) -> dict[str, Raw]:
    try:
        return _object_decoder.decode(members.get("arguments", Raw(b"{}")))
    except msgspec.MsgspecError:
        raise A2AError(INVALID_PARAMS, "arguments are a JSON object", f"{place}.data.arguments") from None


def _value_of(text: str, field: PauseField) -> Raw:
    """A text as the answer of a field; what is no number or truth value stays a text, and is refused with the field's name."""
    if field.type == "string":
        return _quoted(text)
    try:
        value = decode_value(text.strip().lower().encode())
    except ValueError:
        return _quoted(text)
    return Raw(msgspec.json.encode(value))


def _quoted(text: str) -> Raw:
    return Raw(escape(msgspec.json.encode(text)))


def _object(members: dict[str, Raw]) -> Raw:
    return Raw(msgspec.json.encode(members))


def _only(found: Sequence[T]) -> T | None:
    return found[0] if len(found) == 1 else None
