"""Model Context Protocol over HTTP: accepted media types, origin, session (`protocol §13`, `POST /mcp`)."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from asya.capabilities.mcp.types import SESSION_HEADER
from asya.gateway.http.router import Request, Response, TextBody
from asya.gateway.json_rpc import Failure, MessageId, RpcNotification, Success
from asya.protocol.api_errors import ApiError
from asya.protocol.exact_json import encode_json

JSON, EVENTS = "application/json", "text/event-stream"
_SESSION = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True, slots=True)
class AcceptedTypes:
    """The media types that a client accepts."""

    json: bool
    events: bool


def require_same_origin(request: Request) -> None:
    """Reject a request from a page of another site, which could use the browser's network access.

    Raises:
        ApiError: 403 if the header `Origin` names another host.
    """
    origin = request.headers.get("origin")
    if origin is not None and _host(origin) != _host(request.base_url):
        problem = f"pages of {origin[:200]!r} may not call this API; call it from its own origin or without a browser"
        raise ApiError(403, "forbidden_origin", problem, "Origin")


def accepted_types(request: Request) -> AcceptedTypes:
    """Return the media types of the header `Accept`; all types without it.

    Raises:
        ApiError: 406 if the client accepts neither JSON nor events.
    """
    accept = request.headers.get("accept", "*/*")
    names = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    types = AcceptedTypes(
        json=not names.isdisjoint({JSON, "application/*", "*/*"}),
        events=not names.isdisjoint({EVENTS, "text/*", "*/*"}),
    )
    if not (types.json or types.events):
        raise ApiError(406, "not_acceptable", f"a response is {JSON} or {EVENTS}; accept one of them", "Accept")
    return types


def session_id(request: Request) -> str | None:
    """Return the session id from the client's handshake; the gateway does not store it."""
    session = request.headers.get(SESSION_HEADER)
    return session if session is not None and _SESSION.fullmatch(session) else None


def idempotency_key(session: str, message_id: MessageId) -> str:
    """Return the idempotency key of a request, which is unique within its session; a cancellation uses it too."""
    return "mcp " + hashlib.sha256(f"{session}\n{json.dumps(message_id)}".encode()).hexdigest()


def rpc_response(
    message: Success | Failure, notifications: Sequence[RpcNotification], accepted: AcceptedTypes
) -> Response:
    """Return a response: an event stream if notifications come first or the client accepts nothing else, or JSON."""
    if accepted.events and (notifications or not accepted.json):
        return Response(200, TextBody(EVENTS, "".join(_event(each) for each in (*notifications, message))))
    return Response(200, message)


def _event(message: RpcNotification | Success | Failure) -> str:
    # A result keeps its line breaks; the data of an event must be one line.
    text = msgspec.json.format(encode_json(message), indent=-1).decode("utf-8")
    return f"event: message\ndata: {text}\n\n"


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
