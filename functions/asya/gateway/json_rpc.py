"""JSON-RPC 2.0, in which Model Context Protocol and Agent2Agent speak: messages read, answers made (`protocol §13`).

One message for each HTTP request: no revision that the gateway speaks knows batches.
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
    """A message: a request if it has an id, else a notification, which nobody answers."""

    method: str
    jsonrpc: Literal["2.0"]
    id: MessageId | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: a number for programs, a sentence for people."""

    code: int
    message: str
    data: object = UNSET


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request that failed; `id` is null if it could not be read."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: MessageId | None
    error: Fault


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: MessageId
    result: object


class RpcNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification to whoever asked."""

    jsonrpc: Literal["2.0"] = "2.0"
    method: str
    params: object


class RpcError(Exception):
    """Why a message fails, as JSON-RPC says it."""

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        super().__init__(message)
        self.fault = Fault(code=code, message=message, data=data)

    def to_failure(self, message_id: MessageId | UnsetType) -> Failure:
        """The answer to the message with this id."""
        return Failure(id=None if message_id is UNSET else message_id, error=self.fault)


_decoder = msgspec.json.Decoder(RpcMessage)


def read(body: bytes) -> RpcMessage:
    """Read a message.

    Raises:
        RpcError: -32700 if it is no JSON, -32600 if it is no request and no notification.
    """
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        if body.lstrip()[:1] == b"[":
            raise RpcError(INVALID_REQUEST, "one message at a time: batches are not taken") from None
        raise RpcError(INVALID_REQUEST, f"this is no JSON-RPC 2.0 request or notification: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"the body is no JSON: {error}") from None
