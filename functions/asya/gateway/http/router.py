"""HTTP for the gateway's functions: API Gateway's events in, JSON out; every error is JSON with a code (`protocol §13`)."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aws_lambda_powertools import Logger

from asya.gateway.access import IamIdentity, TokenIdentity
from asya.gateway.aws.task_starter import Key
from asya.gateway.http.identity import Authorizer, identity_of
from asya.protocol.api_errors import ApiError
from asya.tasks.aws.task_store import TaskStoreError

KEY_LIMIT = 255
_USUAL_PORTS = {("https", "443"), ("http", "80")}
_UNKNOWN = "the request must be signed (SigV4) by a principal of this account, or carry a token that names its subject"


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
    """What of API Gateway's event (payload format 2.0) is of use."""

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
        path: without the stage.
        parameters: the variable parts of the path, by name.
        headers: names in lower case.
        identity: who signed it, or whose token it came with; None if nobody's.
        api_id: of the API that it came through.
        base_url: the address of that API, without a trailing slash.
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


@dataclass(frozen=True, slots=True)
class TextBody:
    """What is shown as it stands, not as JSON: a stream's events, a page."""

    media_type: str
    body: str


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its status, and what to show: nothing if that is None; as JSON, unless it is a `TextBody`."""

    status: int
    content: object
    headers: Mapping[str, str] = field(default_factory=dict)


HttpOperation = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A call of the API: `GET`, `/api/v1/mesh/{id}`, and what answers it."""

    method: str
    template: str
    operation: HttpOperation

    def parameters(self, path: str) -> dict[str, str] | None:
        """The variable parts of a path of this template; None if the path is none."""
        expected, given = self.template.split("/"), path.split("/")
        if len(expected) != len(given):
            return None
        variable = {part[1:-1]: value for part, value in zip(expected, given, strict=True) if part.startswith("{")}
        constant = zip(expected, given, strict=True)
        fits = all(part == value or (part.startswith("{") and value) for part, value in constant)
        return variable if fits else None


def answer(event: Mapping[str, Any], routes: Sequence[HttpRoute], log: Logger) -> dict[str, Any]:
    """Answer an event of API Gateway; whatever goes wrong becomes an answer too, and a log line if it is our fault."""
    return render(respond(event, routes, log))


def respond(event: Mapping[str, Any], routes: Sequence[HttpRoute], log: Logger) -> Response:
    """The same before it is written down."""
    request_id = ""
    try:
        parsed = _parse(event)
        request_id = parsed.request_context.request_id
        return _dispatch(parsed, routes)
    except ApiError as refused:
        return _refusal(refused)
    except TaskStoreError:
        log.exception("the tasks table is in trouble", request_id=request_id)
        return _failure(503, "unavailable", "the tasks table cannot be reached just now; try again")
    except Exception:
        log.exception("a request failed in a way nobody expected", request_id=request_id)
        return _failure(500, "internal", f"something unexpected went wrong; the log names request {request_id}")


def required_identity(request: Request) -> IamIdentity | TokenIdentity:
    """Who makes the request.

    Raises:
        ApiError: 403 if API Gateway does not say who.
    """
    if request.identity is None:
        raise ApiError(403, "forbidden", _UNKNOWN)
    return request.identity


def check_size(request: Request, limit: int) -> None:
    """Refuse a body that is too large.

    Raises:
        ApiError: 413.
    """
    if len(request.body) > limit:
        raise ApiError(413, "too_large", f"the body has {len(request.body)} bytes; {limit} at most")


def idempotency_key(request: Request, owner: str, digest: str) -> Key | None:
    """The request's `Idempotency-Key`, if it has one.

    Args:
        digest: of what is asked for.

    Raises:
        ApiError: 400 if it is none that can be kept.
    """
    text = request.headers.get("idempotency-key")
    if text is None:
        return None
    if not (0 < len(text) <= KEY_LIMIT and text.isascii() and text.isprintable()):
        problem = f"an Idempotency-Key has 1 to {KEY_LIMIT} printable ASCII characters"
        raise ApiError(400, "invalid_field", problem, "Idempotency-Key")
    return Key(owner, text, digest)


def _parse(event: Mapping[str, Any]) -> _Event:
    try:
        return msgspec.convert(event, _Event)
    except msgspec.ValidationError as error:
        raise ApiError(400, "invalid_event", f"this is no event of an HTTP API, payload format 2.0: {error}") from None


def _dispatch(event: _Event, routes: Sequence[HttpRoute]) -> Response:
    http, path = event.request_context.http, _path(event)
    fitting = [(route, found) for route in routes if (found := route.parameters(path)) is not None]
    for route, parameters in fitting:
        if route.method == http.method:
            return route.operation(_request(event, path, parameters | (event.path_parameters or {})))
    if fitting:
        allowed = ", ".join(sorted({route.method for route, _ in fitting}))
        response = _failure(405, "method_not_allowed", f"{path} takes {allowed}, not {http.method}")
        return Response(response.status, response.content, {"allow": allowed})
    raise ApiError(404, "not_found", f"there is nothing at {path}")


def _path(event: _Event) -> str:
    context = event.request_context
    if context.stage != "$default":
        return context.http.path.removeprefix(f"/{context.stage}")
    return context.http.path


def _request(event: _Event, path: str, parameters: Mapping[str, str]) -> Request:
    context = event.request_context
    headers = {name.lower(): value for name, value in event.headers.items()}
    stage = "" if context.stage == "$default" else f"/{context.stage}"
    return Request(
        method=context.http.method,
        path=path,
        parameters=parameters,
        query=event.query_string_parameters or {},
        headers=headers,
        body=_body(event),
        identity=identity_of(context.authorizer, headers),
        api_id=context.api_id,
        base_url=f"{_origin(context.domain_name, headers)}{stage}",
        request_id=context.request_id,
    )


def _origin(domain_name: str, headers: Mapping[str, str]) -> str:
    """Scheme, host, and the port if it is not the scheme's own: on AWS it always is."""
    scheme = "http" if headers.get("x-forwarded-proto") == "http" else "https"
    port = headers.get("x-forwarded-port", "")
    is_usual = not port.isdecimal() or (scheme, port) in _USUAL_PORTS
    return f"{scheme}://{domain_name}" + ("" if is_usual else f":{port}")


def _body(event: _Event) -> bytes:
    try:
        if event.is_base64_encoded:
            return base64.b64decode(event.body or "", validate=True)
        return (event.body or "").encode("utf-8")
    except (binascii.Error, UnicodeEncodeError):
        raise ApiError(400, "invalid_body", "the body is not what its encoding says") from None


def _refusal(refused: ApiError) -> Response:
    return _failure(refused.status, refused.code, refused.message, refused.field, refused.retry_after)


def _failure(
    status: int, code: str, message: str, field_name: str | None = None, retry_after: int | None = None
) -> Response:
    error = {"code": code, "message": message} | ({"field": field_name} if field_name else {})
    return Response(status, {"error": error}, {"retry-after": str(retry_after)} if retry_after else {})


def render(response: Response) -> dict[str, Any]:
    """An answer as API Gateway takes it (payload format 2.0)."""
    if response.content is None:
        return {"statusCode": response.status, "headers": {"cache-control": "no-store", **response.headers}}
    text = response.content if isinstance(response.content, TextBody) else _json(response.content)
    return {
        "statusCode": response.status,
        "headers": {"content-type": text.media_type, "cache-control": "no-store", **response.headers},
        "body": text.body,
    }


def _json(content: object) -> TextBody:
    return TextBody("application/json", msgspec.json.encode(content).decode("utf-8"))
