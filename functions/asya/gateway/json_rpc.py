"""JSON-RPC 2.0 messages for Model Context Protocol and Agent2Agent (`protocol §13`).

Each HTTP request has one message: the supported revisions have no batches.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MessageId = int | str


class RpcMessage(msgspec.Struct, frozen=True):
    """A request, or without an id a notification, which gets no response."""

    method: str
    jsonrpc: Literal["2.0"]
    id: MessageId | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error: its code, its message and optional data."""

    code: int
    message: str
    data: object = UNSET


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a failed request; `id` is null if the request was unreadable."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: MessageId | None
    error: Fault


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a successful request."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: MessageId
    result: object


class RpcNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification to the client."""

    jsonrpc: Literal["2.0"] = "2.0"
    method: str
    params: object


class RpcError(Exception):
    """A message fails with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        super().__init__(message)
        self.fault = Fault(code=code, message=message, data=data)

    def to_failure(self, message_id: MessageId | UnsetType) -> Failure:
        """Convert to the response to a message."""
        return Failure(id=None if message_id is UNSET else message_id, error=self.fault)


_decoder = msgspec.json.Decoder(RpcMessage)


def read(body: bytes) -> RpcMessage:
    """Read a message.

    Raises:
        RpcError: -32700 for invalid JSON, -32600 for JSON that is neither a request nor a notification.
    """
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        if body.lstrip()[:1] == b"[":
            raise RpcError(INVALID_REQUEST, "batches are not supported; send one message per request") from None
        raise RpcError(INVALID_REQUEST, f"the body is not a JSON-RPC 2.0 request or notification: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"the body is not valid JSON: {error}") from None
