"""Model Context Protocol's side of HTTP: what a client takes, how long it waits, where it comes from, which call it means.

`protocol §13`, `POST /mcp`.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from asya.gateway.http.router import Request, Response, TextBody
from asya.gateway.json_rpc import Failure, MessageId, RpcNotification, Success
from asya.gateway.mcp.types import SESSION_HEADER
from asya.gateway.routes.tool_calls import WAIT_SECONDS
from asya.protocol.api_errors import ApiError

JSON, EVENTS = "application/json", "text/event-stream"
# RFC 7240: for clients that would rather ask again than wait for 25 seconds.
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])", re.IGNORECASE)
_SESSION = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True, slots=True)
class AcceptedTypes:
    """In which forms a client takes an answer."""

    takes_json: bool
    takes_events: bool


def require_same_origin(request: Request) -> None:
    """Refuse what a page of another site sends: nobody's browser shall be talked into speaking to this API.

    Raises:
        ApiError: 403.
    """
    origin = request.headers.get("origin")
    if origin is not None and _host(origin) != _host(request.base_url):
        raise ApiError(403, "forbidden_origin", f"pages of {origin[:200]!r} may not call this", "Origin")


def forms(request: Request) -> AcceptedTypes:
    """What the client takes, by its `Accept`; everything, if it does not say.

    Raises:
        ApiError: 406 if it takes neither of what there is.
    """
    accept = request.headers.get("accept", "*/*")
    taken = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    found = AcceptedTypes(
        takes_json=not taken.isdisjoint({JSON, "application/*", "*/*"}),
        takes_events=not taken.isdisjoint({EVENTS, "text/*", "*/*"}),
    )
    if not (found.takes_json or found.takes_events):
        raise ApiError(406, "not_acceptable", f"answers come as {JSON} or {EVENTS}", "Accept")
    return found


def wait_seconds(request: Request) -> float:
    """How long the client wants to wait for a task, `Prefer: wait=10`; never longer than API Gateway does."""
    wanted = _WAIT.search(request.headers.get("prefer", ""))
    return min(WAIT_SECONDS, float(wanted[1])) if wanted else WAIT_SECONDS


def session_of(request: Request) -> str | None:
    """The session that a client was given at its handshake; nothing is kept of it here."""
    session = request.headers.get(SESSION_HEADER)
    return session if session is not None and _SESSION.fullmatch(session) else None


def call_key(session: str, message_id: MessageId) -> str:
    """The idempotency key of a request: a session's ids are used once, and canceling a request names its id."""
    return "mcp " + hashlib.sha256(f"{session}\n{json.dumps(message_id)}".encode()).hexdigest()


def answered(
    message: Success | Failure, notices: Sequence[RpcNotification], taken: AcceptedTypes, status: int = 200
) -> Response:
    """An answer; as a stream of events if there are notifications before it, or the client takes nothing else."""
    if taken.takes_events and (notices or not taken.takes_json):
        return Response(status, TextBody(EVENTS, "".join(_event(each) for each in (*notices, message))))
    return Response(status, message)


def _event(message: RpcNotification | Success | Failure) -> str:
    # Results are shown as they were written, perhaps over many lines; an event's data has to be one.
    text = msgspec.json.format(msgspec.json.encode(message), indent=-1).decode("utf-8")
    return f"event: message\ndata: {text}\n\n"


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
