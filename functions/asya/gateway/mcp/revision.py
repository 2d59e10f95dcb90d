"""Which revision of Model Context Protocol a request speaks; whether its headers agree with it (`protocol §13`, `POST /mcp`)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from asya.gateway.json_rpc import INVALID_PARAMS, RpcError, RpcMessage
from asya.gateway.mcp.types import (
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

_ENCODED_START, _ENCODED_END = "=?base64?", "?="
_Params = TypeVar("_Params")


class _Named(msgspec.Struct):
    name: str


@dataclass(frozen=True, slots=True)
class McpRequest:
    """A request, as far as it is the same for all methods."""

    call: RpcMessage
    revision: str
    meta: RequestMeta

    @property
    def is_modern(self) -> bool:
        """Whether the request stands for itself."""
        return self.revision == MODERN


def read_request(call: RpcMessage, headers: Mapping[str, str]) -> McpRequest:
    """Find out how a request is meant.

    Args:
        headers: those of HTTP, names in lower case.

    Raises:
        RpcError: if it says less than its revision demands, contradicts itself, or speaks a revision that is not served.
    """
    meta = decode_params(call, RequestParams).meta
    header = headers.get(VERSION_HEADER)
    if call.method == "initialize" and meta.version is None:
        return McpRequest(call, HANDSHAKE[0], meta)
    if meta.version is None and header != MODERN:
        if header is None:
            raise RpcError(
                HEADER_MISMATCH, f"the header {VERSION_HEADER} is missing; it is one of {', '.join(REVISIONS)}"
            )
        require_supported(header)
        return McpRequest(call, header, meta)
    _check_modern(call, meta, headers)
    return McpRequest(call, MODERN, meta)


def negotiate(wanted: str) -> str:
    """The revision that a handshake ends with: the client's, or else the newest that has handshakes."""
    return wanted if wanted in HANDSHAKE else HANDSHAKE[0]


def require_supported(version: str) -> None:
    """Refuse a revision that is not spoken here.

    Raises:
        RpcError: naming those that are.
    """
    if version not in REVISIONS:
        told = {"supported": list(REVISIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"revision {version[:40]!r} is not spoken here", told)


def decode_params(call: RpcMessage, kind: type[_Params]) -> _Params:
    """A request's parameters.

    Raises:
        RpcError: -32602 if they are not what the method takes.
    """
    try:
        return msgspec.json.decode(call.params, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"params of {call.method[:100]}: {error}") from None


def _check_modern(call: RpcMessage, meta: RequestMeta, headers: Mapping[str, str]) -> None:
    if meta.version is None or meta.capabilities is None:
        raise RpcError(
            INVALID_PARAMS,
            "params._meta needs io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities",
        )
    _check_same(headers, VERSION_HEADER, meta.version)
    _check_same(headers, METHOD_HEADER, call.method)
    if call.method == "tools/call":
        _check_same(headers, NAME_HEADER, decode_params(call, _Named).name)
    require_supported(meta.version)


def _check_same(headers: Mapping[str, str], name: str, said: str) -> None:
    """Whatever stands between, a proxy or a balancer, has acted on the header: it has to be what the body says."""
    if _plain(headers.get(name)) != said:
        raise RpcError(HEADER_MISMATCH, f"the header {name} is not what the body says: {said[:100]!r}")


def _plain(value: str | None) -> str | None:
    """A header's value; what HTTP does not carry travels in base64."""
    if value is None or not (value.startswith(_ENCODED_START) and value.endswith(_ENCODED_END)):
        return value
    try:
        return base64.b64decode(value[len(_ENCODED_START) : -len(_ENCODED_END)], validate=True).decode("utf-8")
    except ValueError:
        return None
