"""Types of requests and answers for the OpenAPI document, which handlers read or write in another form."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from asya.gateway.json_rpc import MessageId
from asya.protocol.mesh_keys import TaskTimeout


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem: its code, a message, and the field that has the problem."""

    code: str
    message: str
    field: str | None = None
    fields: list[dict[str, str]] = msgspec.field(default_factory=list)


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """An error response of the mesh."""

    error: Problem


class GatewayMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An error response of API Gateway itself: unsigned, throttled, or an unknown route."""

    message: str | None


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a new task; `timeout` is in seconds."""

    payload: object = None
    headers: dict[str, object] | None = None
    timeout: TaskTimeout | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The new task; an untracked task has no record."""

    id: str
    tracked: bool = True


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool of the mesh file, with arguments that fit its schema."""

    name: str
    arguments: dict[str, object] = msgspec.field(default_factory=dict)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A request or notification of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    id: MessageId | UnsetType = UNSET
    params: dict[str, object] = msgspec.field(default_factory=dict)


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The answers by the names of the pause's fields; `since` names the pause that they are for."""

    input: dict[str, object] = msgspec.field(default_factory=dict)
    since: str | None = None


class CallbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answers by the names of the pause's fields."""

    input: dict[str, object] = msgspec.field(default_factory=dict)


class SingleEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A report on one task: its status, or a partial."""

    type: Literal["status", "fly"] = "status"
    status: str | None = None
    data: dict[str, object] = msgspec.field(default_factory=dict)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The health of the gateway."""

    status: Literal["ok"]
