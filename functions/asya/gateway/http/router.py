"""Routes API Gateway events to the methods that answer them, and renders JSON responses; errors have a code (`protocol §13`).

The texts of AWS errors name accounts, ARNs and keys. They stand in the log, under the id of the request.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec
from aws_lambda_powertools import Logger

from asya.api_call import ApiCall
from asya.gateway.access import Authorizer, IamIdentity, TokenIdentity, identity_of
from asya.protocol.api_errors import ApiError, ErrorCode
from asya.protocol.exact_json import encode_json
from asya.protocol.text import as_utf8
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.starts.idempotency import IdempotencyKey


def with_request_id(message: str, request_id: str) -> str:
    """The message of a failure whose cause is in the log."""
    return f"{message}; look up request {request_id} in the log"


def public_error(error: ApiError, request_id: str, warn: Callable[[str], None]) -> ApiError:
    """Log the cause of a failure (5xx), and return the error for the caller; other errors stay as they are."""
    if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return error
    warn(f"request {request_id} got {error.status} {error.code}: {error.message}; cause: {error.__cause__!r}")
    message = with_request_id(error.message, request_id)
    return ApiError(error.status, error.code, message, error.field, retry_after=error.retry_after)


KEY_LIMIT = 255
_DEFAULT_PORTS = {("https", "443"), ("http", "80")}
_NO_IDENTITY = "sign the request (SigV4) as a principal of this account, or send a token that names its subject"


class _Http(msgspec.Struct):
    method: str
    path: str


class _Context(msgspec.Struct, rename="camel"):
    http: _Http
    api_id: str = ""
    domain_name: str = ""
    stage: str = "$default"
    request_id: str = ""
    authorizer: Authorizer | None = None


class _Event(msgspec.Struct, rename="camel"):
    """The relevant fields of an API Gateway event (payload format 2.0)."""

    request_context: _Context
    headers: dict[str, str] = {}
    query_string_parameters: dict[str, str] | None = None
    path_parameters: dict[str, str] | None = None
    body: str | None = None
    is_base64_encoded: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        path: the path without the stage.
        parameters: the variable parts of the path by name.
        headers: the headers, names in lower case.
        identity: the signer, or the identity in the token; None if unknown.
        api_id: the id of the API that received the request.
        base_url: the URL of that API, without a trailing slash.
    """

    method: str
    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    identity: IamIdentity | TokenIdentity | None
    api_id: str
    base_url: str
    request_id: str

    @property
    def text(self) -> bytes:
        """The body as UTF-8 without a byte order mark, which Windows programs begin files with."""
        return as_utf8(self.body)


@dataclass(frozen=True, slots=True)
class TextBody:
    """A body that is not rendered as JSON, such as Server-Sent Events."""

    media_type: str
    body: str


@dataclass(frozen=True, slots=True)
class Response:
    """A response; the content is rendered as JSON, except None (no body) and a `TextBody`."""

    status: int
    content: object
    headers: Mapping[str, str] = field(default_factory=dict)


Responder = Callable[[Request, datetime], Response]
"""Answers a request at a point in time."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A call with what answers it.

    Attributes:
        responder: Answers; None for a call of another function of the gateway.
        takes_tokens: Whether the API for tokens has the call.
    """

    call: ApiCall
    responder: Responder | None
    takes_tokens: bool = True


def answer(event: Mapping[str, Any], routes: Sequence[HttpRoute], now: datetime, log: Logger) -> dict[str, Any]:
    """Answer an API Gateway event; every exception becomes an error response."""
    return render(respond(event, routes, now, log))


def respond(event: Mapping[str, Any], routes: Sequence[HttpRoute], now: datetime, log: Logger) -> Response:
    """Compute the response; internal errors are logged."""
    request_id = ""
    try:
        parsed = _parse(event)
        request_id = parsed.request_context.request_id
        return _dispatch(parsed, routes, now)
    except ApiError as error:
        public = public_error(error, request_id, log.warning)
        return _error(public.status, public.code, public.message, public.field, public.retry_after)
    except TaskStoreError:
        log.exception("the tasks table is unavailable", request_id=request_id)
        return _error(503, "unavailable", with_request_id("the tasks table is unavailable; try again", request_id))
    except Exception:
        log.exception("a request failed with an unexpected error", request_id=request_id)
        return _error(500, "internal", with_request_id("internal error", request_id))


def required_identity(request: Request) -> IamIdentity | TokenIdentity:
    """The identity of the caller.

    Raises:
        ApiError: 403 if API Gateway does not name the caller.
    """
    if request.identity is None:
        raise ApiError(403, "forbidden", _NO_IDENTITY)
    return request.identity


def check_size(request: Request, limit: int) -> None:
    """Check the size of the body, in bytes.

    Raises:
        ApiError: 413 if the body is too large.
    """
    if len(request.body) > limit:
        raise ApiError(413, "too_large", f"the body has {len(request.body)} bytes; the limit is {limit}")


def idempotency_key(request: Request, owner: str, digest: str) -> IdempotencyKey | None:
    """Read the `Idempotency-Key` of a request; None without the header.

    Args:
        request: the request.
        owner: the principal of the caller.
        digest: the digest of the request, to detect the reuse of a key.

    Raises:
        ApiError: 400 if the key is malformed.
    """
    text = request.headers.get("idempotency-key")
    if text is None:
        return None
    if not (0 < len(text) <= KEY_LIMIT and text.isascii() and text.isprintable()):
        problem = f"Idempotency-Key must have 1 to {KEY_LIMIT} printable ASCII characters"
        raise ApiError(400, "invalid_field", problem, "Idempotency-Key")
    return IdempotencyKey(owner, text, digest)


def _parse(event: Mapping[str, Any]) -> _Event:
    try:
        return msgspec.convert(event, _Event)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise ApiError(400, "invalid_event", f"the event is not of an HTTP API, payload format 2.0: {error}") from None


def _dispatch(event: _Event, routes: Sequence[HttpRoute], now: datetime) -> Response:
    context, path = event.request_context, _path(event)
    has_token = context.authorizer is not None and context.authorizer.jwt is not None
    matches = [
        route for route in routes if (route.takes_tokens or not has_token) and route.call.parameters(path) is not None
    ]
    for route in sorted(matches, key=lambda each: each.call.variables):
        if route.call.method == context.http.method:
            return _responder(route)(_request(event, path, route.call), now)
    if matches:
        allowed = ", ".join(sorted({route.call.method for route in matches}))
        response = _error(405, "method_not_allowed", f"{path} accepts {allowed}, not {context.http.method}")
        return Response(response.status, response.content, {"allow": allowed})
    raise _unknown(path)


def _responder(route: HttpRoute) -> Responder:
    """Return what answers a call.

    Raises:
        ApiError: 503 for a call of another function, while a deployment changes the routes.
    """
    if route.responder is None:
        raise ApiError(503, "unavailable", f"{route.call.route} is moving to another function; try again")
    return route.responder


def _unknown(path: str) -> ApiError:
    return ApiError(404, "not_found", f"no route matches {path}")


# An encoded slash, backslash or dot that is left, an empty part, and parts that name a folder.
_ODD_PATH = re.compile(r"%(2f|5c|2e)|//|/\.\.?(/|$)", re.IGNORECASE)


def _path(event: _Event) -> str:
    """Return the path without the stage, decoded as API Gateway decodes it.

    Raises:
        ApiError: 404 if it has a part that other readers may read otherwise, or is not the path that API Gateway has matched.
    """
    context = event.request_context
    prefix = f"/{context.stage}" if context.stage != "$default" else ""
    path = context.http.path.removeprefix(prefix)
    rest = (event.path_parameters or {}).get("proxy", "")
    if _ODD_PATH.search(path) or not path.rstrip("/").endswith(rest.rstrip("/")):
        raise _unknown(path)
    return unquote(path)


def _parameters(event: _Event, path: str, call: ApiCall) -> Mapping[str, str]:
    """Return the variable parts of the path by name.

    Raises:
        ApiError: 404 if API Gateway has read others: a function gets the path only up to a decoded question mark.
    """
    found = call.parameters(path) or {}
    theirs = event.path_parameters or {}
    if any(name in theirs and unquote(theirs[name]) != value for name, value in found.items()):
        raise _unknown(path)
    return found


def _request(event: _Event, path: str, call: ApiCall) -> Request:
    context = event.request_context
    headers = {name.lower(): value for name, value in event.headers.items()}
    stage = "" if context.stage == "$default" else f"/{context.stage}"
    return Request(
        method=context.http.method,
        path=path,
        parameters=_parameters(event, path, call),
        query=event.query_string_parameters or {},
        headers=headers,
        body=_body(event, headers),
        identity=identity_of(context.authorizer, headers),
        api_id=context.api_id,
        base_url=f"{_origin(context.domain_name, headers)}{stage}",
        request_id=context.request_id,
    )


def _origin(domain_name: str, headers: Mapping[str, str]) -> str:
    """Scheme and host, with the port unless it is the default; only local clouds use other ports."""
    scheme = "http" if headers.get("x-forwarded-proto") == "http" else "https"
    port = headers.get("x-forwarded-port", "")
    is_default = not port.isdecimal() or (scheme, port) in _DEFAULT_PORTS
    return f"{scheme}://{domain_name}" + ("" if is_default else f":{port}")


_REPLACED = "API Gateway has replaced bytes of the body that are no UTF-8; send UTF-8, or the content type application/octet-stream"


def _body(event: _Event, headers: Mapping[str, str]) -> bytes:
    """Return the body as it was sent (`protocol §13.bytes`).

    Raises:
        ApiError: 400 if it is no base64, no text, or evidently not what was sent.
    """
    text = event.body or ""
    try:
        if event.is_base64_encoded:
            return base64.b64decode(text, validate=True)
        body = text.encode("utf-8")
    except ValueError:
        raise ApiError(400, "invalid_body", "the body does not match its encoding") from None
    sent = headers.get("content-length", "")
    if "\ufffd" in text and sent.isdecimal() and int(sent) != len(body):
        raise ApiError(400, "invalid_body", _REPLACED)
    return body


def _error(
    status: int, code: ErrorCode, message: str, field_name: str | None = None, retry_after: int | None = None
) -> Response:
    error = {"code": code, "message": message} | ({"field": field_name} if field_name else {})
    headers = {"retry-after": str(retry_after)} if retry_after else {}
    return Response(status, {"error": error}, headers | ({"www-authenticate": "Bearer"} if status == 401 else {}))


def render(response: Response) -> dict[str, Any]:
    """Render a response for API Gateway (payload format 2.0)."""
    if response.content is None:
        return {"statusCode": response.status, "headers": {"cache-control": "no-store", **response.headers}}
    text = response.content if isinstance(response.content, TextBody) else _json(response.content)
    return {
        "statusCode": response.status,
        "headers": {"content-type": text.media_type, "cache-control": "no-store", **response.headers},
        "body": text.body,
    }


def _json(content: object) -> TextBody:
    return TextBody("application/json", encode_json(content).decode("utf-8"))


_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])", re.IGNORECASE)


def preferred_wait(request: Request) -> float | None:
    """Return the seconds of `Prefer: wait=10`; None if the client has no preference."""
    match = _WAIT.search(request.headers.get("prefer", ""))
    return float(match[1]) if match else None
