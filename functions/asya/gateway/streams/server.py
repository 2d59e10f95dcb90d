"""Long-lived streams: the stream routes behind an HTTP server (`gateway.streaming: adapter`, `protocol §13`).

A managed Python runtime cannot stream. AWS Lambda Web Adapter starts this server, passes each request on, and returns
the response as it is written. A REST API with a streaming integration stands in front. The adapter puts API Gateway's
request context into the header `x-amzn-request-context`, and does not let clients set it.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from aws_lambda_powertools import Logger

from asya.function.aws.settings import load_settings
from asya.function.lambdas.environment import Environment
from asya.function.lambdas.function import Function
from asya.gateway.doors import passed_path
from asya.gateway.http.router import HttpRoute, Response, render, respond
from asya.gateway.streams import sse
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.routes import RETRY_MILLISECONDS, StreamRequest, StreamRoutes, build_streams, stream_routes

HEALTH = "/health"
_CONTEXT_HEADER = "x-amzn-request-context"
_PORT = 8080


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    user_arn: str | None = None
    caller: str | None = None


class _Context(msgspec.Struct, frozen=True, rename="camel"):
    """The request context of a REST API; `identity.caller` is the user id."""

    identity: _Identity = _Identity()
    request_id: str = ""
    stage: str = "$default"
    domain_name: str = ""


@dataclass(frozen=True, slots=True)
class StreamServer:
    """Serves long-lived streams.

    Attributes:
        keepalive: Seconds without events after which a comment keeps the connection open.
        max_seconds: The longest duration of one response.
    """

    routes: Sequence[HttpRoute]
    poller: EventPoller
    environment: Environment
    log: Logger
    keepalive: float = sse.KEEPALIVE_SECONDS
    max_seconds: float = sse.MAX_STREAM_SECONDS

    def answer(self, method: str, address: str, headers: dict[str, str]) -> Response:
        """Answer a request; a `StreamRequest` as content has to be streamed."""
        if urlsplit(address).path == HEALTH:
            return Response(HTTPStatus.OK, {"status": "ok"})
        return respond(_event(method, address, headers), self.routes, self.environment.now(), self.log)

    def stream(self, request: StreamRequest) -> Iterator[str]:
        """Yield the text of a stream until the task ends, `max_seconds` are over, or the right to follow it has ended."""
        started = self.environment.monotonic()
        most = request.seconds(self.max_seconds, self.environment.now())
        yield sse.retry(RETRY_MILLISECONDS)
        cursor = request.cursor
        while (remaining := most - (self.environment.monotonic() - started)) > 0:
            asked = self.environment.monotonic()
            events = self.poller.poll(
                request.task_id,
                cursor,
                self.environment.now(),
                min(self.keepalive, remaining),
                with_partials=request.format.has_partials,
            )
            for event in events:
                yield request.format.encode(event)
            if events and events[-1].type == "final":
                return
            if events:
                cursor = events[-1].cursor
            elif self.environment.monotonic() - asked < min(self.keepalive, remaining):
                return  # the record of the task has expired, so there is nothing to wait for
            else:
                yield sse.KEEPALIVE


def _event(method: str, address: str, headers: dict[str, str]) -> dict[str, Any]:
    """Return the request as an event of an HTTP API, which the routes read."""
    split = urlsplit(address)
    context = _context(headers.get(_CONTEXT_HEADER))
    identity = {"userArn": context.identity.user_arn, "userId": context.identity.caller}
    return {
        "headers": headers,
        "queryStringParameters": dict(parse_qsl(split.query, keep_blank_values=True)),
        "requestContext": {
            "http": {"method": method, "path": passed_path(split.path)},
            "domainName": context.domain_name,
            "stage": context.stage,
            "requestId": context.request_id,
            "authorizer": {"iam": identity},
        },
    }


def _context(header: str | None) -> _Context:
    try:
        return msgspec.json.decode(header or "{}", type=_Context)
    except msgspec.DecodeError:
        return _Context()


def http_server(streams: StreamServer, port: int = _PORT) -> ThreadingHTTPServer:
    """Return an HTTP server on loopback; port 0 selects a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            if len(self.headers.get_all(_CONTEXT_HEADER, [])) > 1:
                # One of them may be forged: such a request has no identity.
                del headers[_CONTEXT_HEADER]
            response = streams.answer("GET", self.path, headers)
            try:
                if isinstance(response.content, StreamRequest):
                    self._send_stream(response, streams.stream(response.content))
                else:
                    self._send_whole(render(response))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _send_stream(self, response: Response, events: Iterator[str]) -> None:
            self._send_head(
                response.status,
                {"content-type": sse.MEDIA_TYPE, "cache-control": "no-store", **response.headers},
                {"transfer-encoding": "chunked"},
            )
            try:
                for event in events:
                    self._send_chunk(event.encode())
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception:
                # The client reconnects with its cursor and gets the other events.
                streams.log.exception("the stream failed; the client reconnects")
            self._send_chunk(b"")

        def _send_whole(self, response: dict[str, Any]) -> None:
            body = response.get("body", "").encode()
            self._send_head(response["statusCode"], response["headers"], {"content-length": str(len(body))})
            self.wfile.write(body)

        def _send_head(self, status: int, headers: dict[str, str], framing: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | framing).items():
                self.send_header(name, value)
            self.end_headers()

        def _send_chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing: API Gateway logs the requests."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the signature of the base class
            if not isinstance(sys.exception(), ConnectionError):
                streams.log.exception("the request failed with an unexpected error")

    return Server(("127.0.0.1", port), Handler)


def live_routes(own: Function, streams: StreamRoutes) -> list[HttpRoute]:
    """Return the routes of streams; the other calls of the gateway do not come here."""
    return [each for each in stream_routes(own, streams) if each.responder is not None and each.call.method == "GET"]


def stream_server(own: Function) -> StreamServer:
    """Build the server of a mesh."""
    streams = replace(build_streams(own), is_continuous=True)
    return StreamServer(live_routes(own, streams), streams.poller, own.environment, own.telemetry.log)


def main() -> None:
    """Serve until the process ends."""
    streams = stream_server(Function(load_settings(os.environ)))
    port = int(os.environ.get("AWS_LWA_PORT", _PORT))
    http_server(streams, port).serve_forever()


if __name__ == "__main__":
    main()
