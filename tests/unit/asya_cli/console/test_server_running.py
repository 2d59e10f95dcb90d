"""The server on a socket, before a gateway that answers with any bytes: each answer is valid HTTP, and no fault is logged."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from asya_cli.console.guard import SECRET_HEADER, Guard
from asya_cli.console.page import PageFile
from asya_cli.console.server import Console, MeshInfo, make_server
from tests.doubles.server_faults import no_server_faults
from tests.unit.asya_cli.console.test_gateway import KEYS, gateway_at

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = b"<!doctype html><title>Asya</title>"
ZIPPED = gzip.compress(b'{"id": "order-1"}' * 1000)
JSON = b"content-type: application/json\r\n"


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A gateway that sends one of these answers, byte for byte, on each connection."""

    def serve(listener: socket.socket) -> None:
        for answer in answers:
            with listener.accept()[0] as connection:
                received = b""
                while b"\r\n\r\n" not in received:
                    received += connection.recv(65_536)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=[listener], daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(30)


@contextmanager
def running(gateway_url: str) -> Iterator[int]:
    """The console on a socket; yields its port."""
    info = MeshInfo(namespace="shop", region="eu-north-1", is_local=True, options="", version="0")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        page = {"/": PageFile("text/html", PAGE)}
        redrive: Any = None
        server = make_server(Console(Guard(port, "s"), page, info, gateway_at(gateway_url, KEYS), redrive))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        with no_server_faults():
            thread.start()
            try:
                yield port
            finally:
                server.should_exit = True
                thread.join(30)


def ask(port: int, method: str, path: str) -> tuple[int, bytes, str | None]:
    """The status, the body and the length that the header promises."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers={SECRET_HEADER: "s", "origin": f"http://127.0.0.1:{port}"})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers["content-length"]
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n" + JSON + b"\r\nnull", 204, b""),
        (b"HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n", 205, b""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + JSON + b"\r\n{}", 200, b"{}"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + JSON + b"\r\n{} and more", 200, b"{}"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n" + JSON + b"\r\n{}", 200, b"{}"),
        (b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\n{}", 200, b"{}"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" + JSON + b"\r\n2\r\n{}\r\n0\r\n\r\n", 200, b"{}"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" + JSON + b"\r\n2\r\n{}\r\nzz", 200, b"{}"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED,
            200,
            gzip.decompress(ZIPPED),
        ),
    ],
    ids=[
        "no-body",
        "204-with-a-body",
        "205",
        "length",
        "too-long",
        "too-short",
        "until-the-end",
        "chunked",
        "broken-chunk",
        "gzip",
    ],
)
def test_each_answer_of_the_gateway_is_passed_on_as_valid_http(answer: bytes, status: int, body: bytes) -> None:
    with answering(answer) as url, running(url) as port:
        assert ask(port, "DELETE", "/api/v1/mesh/order-1")[:2] == (status, body)


def test_the_headers_of_the_page_are_those_that_come_with_it() -> None:
    with running("http://127.0.0.1:1") as port:
        assert ask(port, "GET", "/") == (200, PAGE, str(len(PAGE)))
        assert ask(port, "HEAD", "/") == (200, b"", str(len(PAGE)))
