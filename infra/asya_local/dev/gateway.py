"""The gateway of a mesh of `asya dev`: an HTTP server that passes requests to the functions, as API Gateway does."""

from __future__ import annotations

import base64
import json
import pkgutil
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from uuid import uuid4

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from asya import registry
from asya.api_call import ApiCall
from asya.gateway.doors import Door, choose, doors_of, passed_path
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, Invocation
from asya.manifest import Requests
from asya_local.authentication.admission import Refusal, authenticate, refuse_foreign
from asya_local.authentication.signatures import HttpCall, Signature, SignatureError, read_signature
from asya_local.dev.telemetry import DevTelemetry

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from asya_local.dev.deployment import Deployment
    from asya_local.dev.functions import Tell, ToldLines
    from asya_local.dev.resources import Operator

_LARGEST_BODY = 10 * 1024 * 1024
"""Bytes, as of an HTTP API."""
_LOOPBACK = "127.0.0.1"


Functions = Mapping[str, Invocation]
"""The functions of the gateway by name."""


def build_functions(mesh: Deployment, tell: Tell, lines: ToldLines) -> Functions:
    """Build the functions of a mesh that answer calls.

    Args:
        mesh: The mesh.
        tell: Takes the level and the text of what the author should know.
        lines: What the functions have told.
    """
    functions: dict[str, Invocation] = {}
    for each in registry.functions_of(mesh.table):
        if isinstance(each.called_by, Requests):
            telemetry: Any = DevTelemetry(each.name, tell)
            own = HttpServices(
                settings=mesh.settings(each.name), given_telemetry=telemetry, lines=lines, on_lambda=False
            )
            entry_point: HttpEntryPoint = pkgutil.resolve_name(each.entry_point)
            functions[each.name] = entry_point.start(own)
    return functions


class Gateway:
    """One HTTP server on a port of loopback. It takes calls that the operator has signed, and public ones."""

    def __init__(self, port: int, tell: Tell) -> None:
        """Bind the port; 0 chooses a free one.

        Raises:
            OSError: the port is taken.
        """
        self._tell = tell
        self._functions: Functions | None = None
        self._doors: Sequence[Door] = ()
        self._operator: Operator | None = None
        try:
            self._http: BaseWSGIServer = make_server(
                _LOOPBACK, port, self._respond, threaded=True, request_handler=_QuietHandler
            )
        except SystemExit:  # so werkzeug says that the port is taken
            raise OSError(f"port {port} is taken") from None

    @property
    def port(self) -> int:
        """The port of the server."""
        return int(self._http.server_port)

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return f"http://{_LOOPBACK}:{self.port}"

    def serve(self, calls: Sequence[ApiCall], functions: Functions, operator: Operator) -> None:
        """Answer these calls with these functions from now on."""
        is_first = self._functions is None
        self._doors, self._functions, self._operator = doors_of(calls), functions, operator
        if is_first:
            # `end` waits for the next poll of this loop, which is half a second away by default.
            poll = {"poll_interval": 0.05}
            threading.Thread(target=self._http.serve_forever, kwargs=poll, name="gateway", daemon=True).start()

    def end(self) -> None:
        """Take no further calls."""
        if self._functions is not None:
            self._http.shutdown()
        self._http.server_close()

    def _respond(self, environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        return self._answer(Request(environment), environment)(environment, start)

    def _answer(self, request: Request, environment: WSGIEnvironment) -> Response:
        assert self._functions is not None
        raw_path, _, _ = str(environment.get("RAW_URI", request.path)).partition("?")
        headers = {name.lower(): value for name, value in request.headers}
        call = HttpCall(request.method, raw_path, request.query_string.decode("latin-1"), headers)
        refusal = refuse_foreign(call, is_api=True)
        if refusal is not None:
            return _error(403, refusal.message)
        path = passed_path(raw_path)
        door = choose(self._doors, request.method, path)
        if door is None:
            return _error(404, "Not Found")
        if not self._may_send(call, door):
            return _error(403, "Forbidden")
        request.max_content_length = _LARGEST_BODY
        try:
            body = request.get_data()
        except RequestEntityTooLarge:
            return _error(413, "Request Too Long")
        caller = self._caller(call, body, door)
        if isinstance(caller, Refusal):
            return _error(403, "Forbidden")
        event = self._event(call, path, body, caller) | {
            "routeKey": door.key,
            "pathParameters": door.parameters(path) or None,
        }
        return _response(self._functions[door.function](event))

    def _may_send(self, call: HttpCall, door: Door) -> bool:
        """Return whether a call may be worth its body: it is public, or it names the key of the operator."""
        assert self._operator is not None
        try:
            signature = read_signature(call)
        except SignatureError:
            return False
        return door.is_open if signature is None else signature.access_key == self._operator.key.access_key

    def _caller(self, call: HttpCall, body: bytes, door: Door) -> Operator | Refusal | None:
        """Return who signed a call, or why nobody known did; None for a public call without a signature."""
        assert self._operator is not None
        operator = self._operator

        def secret_key(signature: Signature) -> str | Refusal:
            if signature.access_key != operator.key.access_key:
                return Refusal("UnrecognizedClientException", "The security token included in the request is invalid.")
            return operator.key.secret_key

        try:
            if door.is_open and read_signature(call) is None:
                return None
        except SignatureError as error:
            return Refusal(error.code, error.message)
        signature = authenticate(call, body, secret_key, datetime.now(UTC))
        return signature if isinstance(signature, Refusal) else operator

    def _event(self, call: HttpCall, path: str, body: bytes, caller: Operator | None) -> dict[str, Any]:
        """Return the event of API Gateway, payload format 2.0."""
        authorizer = {} if caller is None else {"iam": {"userArn": caller.arn, "userId": caller.user_id}}
        headers = {**call.headers, "x-forwarded-proto": "http", "x-forwarded-port": str(self.port)}
        return {
            "version": "2.0",
            "rawPath": path,
            "headers": headers,
            "queryStringParameters": _parameters(call.query) or None,
            "requestContext": {
                "http": {"method": call.method, "path": path},
                "apiId": "dev",
                "domainName": _LOOPBACK,
                "stage": "$default",
                "requestId": str(uuid4()),
                "authorizer": authorizer or None,
            },
            "body": base64.b64encode(body).decode(),
            "isBase64Encoded": True,
        }


class _QuietHandler(WSGIRequestHandler):
    """Writes no line for each request."""

    protocol_version = "HTTP/1.1"

    def log(self, *_: object, **__: object) -> None:
        """Write nothing."""


def _parameters(query: str) -> dict[str, str]:
    """Return the parameters of a query; the values of one name are joined by commas, as API Gateway joins them."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name, []).append(value)
    return {name: ",".join(each) for name, each in values.items()}


def _response(result: Mapping[str, Any]) -> Response:
    return Response(result.get("body", ""), status=result["statusCode"], headers=dict(result["headers"]))


def _error(status: int, message: str) -> Response:
    return Response(json.dumps({"message": message}), status=status, content_type="application/json")
