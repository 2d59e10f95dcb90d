"""Streams that go on: the same calls behind a plain HTTP server (`gateway.streaming: adapter`, `protocol §13`).

A managed Python runtime cannot stream. AWS Lambda Web Adapter starts this server instead, hands each request to it, and passes
on what it answers as it comes; in front of the function is a REST API whose integration streams. The adapter tells what
API Gateway knows of a request in the header `x-amzn-request-context`, and lets no client set that.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from aws_lambda_powertools import Logger

from asya.gateway.http.router import HttpRoute, Response, render, respond
from asya.gateway.streams import sse
from asya.gateway.streams.routes import RETRY_MILLISECONDS, StreamRoutes, Watch
from asya.gateway.streams.wiring import build_streams
from asya.messaging.aws.settings import load_settings
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import REAL, Environment

HEALTH = "/health"
_CONTEXT_HEADER = "x-amzn-request-context"
_PORT = 8080


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    user_arn: str | None = None
    caller: str | None = None


class _Context(msgspec.Struct, frozen=True, rename="camel"):
    """What of a REST API's context is of use; its user id goes by the name of caller."""

    identity: _Identity = _Identity()
    request_id: str = ""
    stage: str = "$default"
    domain_name: str = ""


@dataclass(frozen=True, slots=True)
class StreamServer:
    """Streams as they are served here.

    Attributes:
        keepalive: seconds without news after which a comment keeps the connection open.
        longest: seconds that one answer goes on.
    """

    streams: StreamRoutes
    environment: Environment
    log: Logger
    keepalive: float = sse.KEEPALIVE_SECONDS
    longest: float = sse.MAX_STREAM_SECONDS

    def answer(self, method: str, address: str, headers: dict[str, str]) -> Response:
        """A request's answer; a `Watch` as its content is to be followed."""
        if urlsplit(address).path == HEALTH:
            return Response(HTTPStatus.OK, {"status": "ok"})
        routes: tuple[HttpRoute, ...] = self.streams.watches(self.environment.now())
        return respond(_event(method, address, headers), routes, self.log)

    def events(self, watch: Watch) -> Iterator[str]:
        """The text of a stream, piece by piece, until the task ends or the answer has gone on for long enough."""
        began = self.environment.monotonic()
        yield sse.retry(RETRY_MILLISECONDS)
        shown = watch.shown
        while (left := self.longest - (self.environment.monotonic() - began)) > 0:
            items = self.streams.poller.poll(
                watch.task_id,
                shown,
                self.environment.now(),
                min(self.keepalive, left),
                with_partials=watch.words.has_partials,
            )
            for item in items:
                yield watch.words.event(item)
            if items and items[-1].event == "final":
                return
            if items:
                shown = items[-1].shown
            else:
                yield sse.KEEPALIVE


def _event(method: str, address: str, headers: dict[str, str]) -> dict[str, Any]:
    """The request as the event of an HTTP API, which is what the calls read."""
    split = urlsplit(address)
    context = _context(headers.get(_CONTEXT_HEADER))
    identity = {"userArn": context.identity.user_arn, "userId": context.identity.caller}
    return {
        "headers": headers,
        "queryStringParameters": dict(parse_qsl(split.query, keep_blank_values=True)),
        "requestContext": {
            "http": {"method": method, "path": unquote(split.path)},
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


def server(live: StreamServer, port: int = _PORT) -> ThreadingHTTPServer:
    """The server, on this machine only; 0 takes any port that is free."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            if len(self.headers.get_all(_CONTEXT_HEADER, [])) > 1:
                del headers[_CONTEXT_HEADER]  # somebody would like to be somebody else
            response = live.answer("GET", self.path, headers)
            try:
                if isinstance(response.content, Watch):
                    self._stream(response, live.events(response.content))
                else:
                    self._whole(render(response))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # whoever looked on has gone

        def _stream(self, response: Response, events: Iterator[str]) -> None:
            self._head(
                response.status,
                {"content-type": sse.MEDIA_TYPE, "cache-control": "no-store", **response.headers},
                {"transfer-encoding": "chunked"},
            )
            try:
                for event in events:
                    self._chunk(event.encode())
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception:  # what was told holds; the client comes back for the rest
                live.log.exception("a stream broke off")
            self._chunk(b"")

        def _whole(self, answer: dict[str, Any]) -> None:
            body = answer.get("body", "").encode()
            self._head(answer["statusCode"], answer["headers"], {"content-length": str(len(body))})
            self.wfile.write(body)

        def _head(self, status: int, headers: dict[str, str], more: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | more).items():
                self.send_header(name, value)
            self.end_headers()

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """API Gateway logs its requests."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - what it is called with
            if not isinstance(sys.exception(), ConnectionError):
                live.log.exception("a request failed in a way nobody expected")

    return Server(("127.0.0.1", port), Handler)


def main() -> None:
    """Serve until the process is ended."""
    settings = load_settings(os.environ)
    telemetry = Telemetry(settings.namespace, settings.actor)
    streams = build_streams(settings, telemetry)
    port = int(os.environ.get("AWS_LWA_PORT", _PORT))
    server(StreamServer(streams, REAL, telemetry.log), port).serve_forever()


if __name__ == "__main__":
    main()
