"""Reads the revision of a request and checks that its headers agree with its body (`protocol §13`, `POST /mcp`)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from asya.capabilities.mcp.types import (
    HANDSHAKE,
    HEADER_MISMATCH,
    METHOD_HEADER,
    MODERN,
    NAME_HEADER,
    REVISIONS,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    RequestMeta,
    RequestParams,
)
from asya.gateway.json_rpc import INVALID_PARAMS, RpcError, RpcMessage

_ENCODED_START, _ENCODED_END = "=?base64?", "?="
_Params = TypeVar("_Params")


class _NameParams(msgspec.Struct):
    name: str


@dataclass(frozen=True, slots=True)
class McpRequest:
    """A request with its revision."""

    message: RpcMessage
    revision: str
    meta: RequestMeta

    @property
    def is_modern(self) -> bool:
        """Whether the request is self-contained."""
        return self.revision == MODERN


def read_request(message: RpcMessage, headers: Mapping[str, str]) -> McpRequest:
    """Determine the revision of a request and check its headers.

    Args:
        headers: The HTTP headers, with names in lower case.

    Raises:
        RpcError: If something that the revision requires is missing, header and body differ, or the revision is not
            supported.
    """
    meta = decode_params(message, RequestParams).meta
    header = headers.get(VERSION_HEADER)
    if message.method == "initialize" and meta.version is None:
        return McpRequest(message, HANDSHAKE, meta)
    if meta.version is None and header != MODERN:
        if header is None:
            raise RpcError(
                HEADER_MISMATCH, f"the header {VERSION_HEADER} is missing; it is one of {', '.join(REVISIONS)}"
            )
        require_supported(header)
        return McpRequest(message, header, meta)
    _check_modern(message, meta, headers)
    return McpRequest(message, MODERN, meta)


def require_supported(version: str) -> None:
    """Check that a revision is supported.

    Raises:
        RpcError: -32022 with the supported revisions.
    """
    if version not in REVISIONS:
        data = {"supported": list(REVISIONS), "requested": version}
        raise RpcError(
            UNSUPPORTED_VERSION, f"revision {version[:40]!r} is not supported; use one of {', '.join(REVISIONS)}", data
        )


def decode_params(message: RpcMessage, kind: type[_Params]) -> _Params:
    """Decode the parameters of a message.

    Raises:
        RpcError: -32602 if they do not fit the method.
    """
    try:
        return msgspec.json.decode(message.params, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"params of {message.method[:100]}: {error}") from None


def _check_modern(message: RpcMessage, meta: RequestMeta, headers: Mapping[str, str]) -> None:
    if meta.version is None or meta.capabilities is None:
        raise RpcError(
            INVALID_PARAMS,
            "params._meta needs io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities",
        )
    _check_same(headers, VERSION_HEADER, meta.version)
    _check_same(headers, METHOD_HEADER, message.method)
    if message.method == "tools/call":
        _check_same(headers, NAME_HEADER, decode_params(message, _NameParams).name)
    require_supported(meta.version)


def _check_same(headers: Mapping[str, str], name: str, expected: str) -> None:
    """Check a header against the body: a proxy may have acted on the header."""
    if _decode_header(headers.get(name)) != expected:
        raise RpcError(HEADER_MISMATCH, f"the header {name} must repeat the value in the body: {expected[:100]!r}")


def _decode_header(value: str | None) -> str | None:
    """Return a header's value, decoded from base64 if it is marked; None if that fails."""
    if value is None or not (value.startswith(_ENCODED_START) and value.endswith(_ENCODED_END)):
        return value
    try:
        return base64.b64decode(value[len(_ENCODED_START) : -len(_ENCODED_END)], validate=True).decode("utf-8")
    except ValueError:
        return None
