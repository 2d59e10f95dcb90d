"""Calls to the gateway: signed with the user's credentials, passed on piece by piece."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.credentials import Credentials

from asya.client.errors import MeshError, UnreachableError
from asya_cli.console.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator


class Server:
    """A server that answers as a test says, and notes what it got."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.status = 200
        self.headers = {"content-type": "application/json", "set-cookie": "a=b", "server": "x"}
        self.pieces = [b"{}"]
        self.may_go_on = threading.Event()


@contextmanager
def running(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            server.requests.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(server.status)
            for name, value in server.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for number, piece in enumerate(server.pieces):
                if number:
                    server.may_go_on.wait(30)
                self.wfile.write(piece)
                self.wfile.flush()

        do_GET = do_POST  # noqa: N815 - the name is the library's

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Writes no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}"
        finally:
            server.may_go_on.set()
            httpd.shutdown()
            thread.join()


def gateway_at(url: str, credentials: Credentials | None) -> Gateway:
    session = SimpleNamespace(get_credentials=lambda: credentials)
    connection: Any = SimpleNamespace(gateway_url=url, region="eu-north-1", session=session)
    return Gateway(connection)


KEYS = Credentials("AKIA0000000000000001", "secret", "token")


def test_a_call_is_signed_and_has_no_header_of_the_browser() -> None:
    with running(server := Server()) as url:
        sent = {"accept": "application/json", "cookie": "a=b", "x-asya-console-secret": "s", "origin": "http://x"}
        answer = gateway_at(url, KEYS).call("POST", "/api/v1/mesh/a%2Fb/replay?x=1%202", sent, b"{}")
        assert (answer.status, b"".join(answer.body)) == (200, b"{}")
    [(method, path, headers, body)] = server.requests
    assert (method, path, body) == ("POST", "/api/v1/mesh/a%2Fb/replay?x=1%202", b"{}")
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIA0000000000000001/")
    assert headers["x-amz-security-token"] == "token"
    assert {"cookie", "origin", "x-asya-console-secret"} & set(headers) == set()


def test_an_answer_has_only_the_headers_of_a_list() -> None:
    with running(Server()) as url:
        answer = gateway_at(url, KEYS).call("GET", "/api/v1/mesh", {}, b"")
        assert answer.headers == {"content-type": "application/json"}
        list(answer.body)


def test_a_piece_of_a_stream_arrives_before_the_next_is_sent() -> None:
    server = Server()
    server.pieces = [b"event: status\n\n", b"event: final\n\n"]
    with running(server) as url:
        body = gateway_at(url, KEYS).call("GET", "/api/v1/mesh/a/events", {}, b"").body
        assert next(iter(body)) == b"event: status\n\n"
        server.may_go_on.set()
        assert b"".join(body) == b"event: final\n\n"


def test_a_redirect_is_not_followed() -> None:
    server = Server()
    server.status, server.headers = 302, {"location": "http://127.0.0.1:1/elsewhere"}
    with running(server) as url, pytest.raises(MeshError, match="answered 302"):
        gateway_at(url, KEYS).call("GET", "/api/v1/mesh", {}, b"")


def test_without_credentials_nothing_is_sent() -> None:
    with running(server := Server()) as url, pytest.raises(MeshError, match="no AWS credentials"):
        gateway_at(url, None).call("GET", "/api/v1/mesh", {}, b"")
    assert server.requests == []


def test_a_gateway_that_does_not_answer_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(UnreachableError, match="did not answer"):
        gateway_at(f"http://127.0.0.1:{port}", KEYS).call("GET", "/api/v1/mesh", {}, b"")
