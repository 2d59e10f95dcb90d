"""Tests the fault proxy on loopback, in front of a server that notes the requests it receives."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.chaos.call_faults import CallPlan
from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.http_messages import Message, read_request, read_response
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

SEND = (
    b"POST / HTTP/1.1\r\nHost: sqs\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n"
    b"Authorization: AWS4-HMAC-SHA256 Credential=AK/20251118/us-east-1/sqs/aws4_request\r\nContent-Length: 4\r\n\r\nbody"
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Server:
    """A server that notes each request and answers all alike."""

    answer: bytes = ANSWER
    requests: list[bytes] = field(default_factory=list)
    received: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await read_request(reader, writer)
                self.requests.append(request.bytes)
                self.received.set()
                writer.write(self.answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def with_proxy(folder: Path, server: Server, plan: CallPlan, use: Callable[[int], Awaitable[None]]) -> None:
    """Run `use` with the port of a proxy that has read the plan."""
    plan.write(folder / "plan.json")
    upstream = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    proxy = FaultProxy(lambda: upstream.sockets[0].getsockname()[1], folder / "plan.json", folder / "counts.json")
    serving = asyncio.create_task(proxy.serve(done, port.set_result))
    try:
        await use(await port)
    finally:
        done.set_result(None)
        await serving
        upstream.close()


async def call(port: int, request: bytes) -> Message:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await read_response(reader, Message(request, b""))
    finally:
        writer.close()


def run(folder: Path, server: Server, plan: CallPlan, request: bytes = SEND) -> Message | None:
    """One call through the proxy; None if the connection closes without an answer."""
    answers: list[Message] = []

    async def use(port: int) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            answers.append(await call(port, request))

    asyncio.run(with_proxy(folder, server, plan, use))
    return answers[0] if answers else None


def test_a_call_and_its_answer_pass_unchanged(tmp_path: Path) -> None:
    server = Server()
    assert run(tmp_path, server, CallPlan()) == Message(ANSWER[:-2], b"ok")
    assert server.requests == [SEND]


def test_an_error_does_not_reach_the_server(tmp_path: Path) -> None:
    server = Server()
    answer = run(tmp_path, server, CallPlan(error=1.0))
    assert answer is not None
    assert b"injected" in answer.body
    assert server.requests == []


@pytest.mark.parametrize(("plan", "passed"), [(CallPlan(lost_call=1.0), 0), (CallPlan(lost_answer=1.0), 1)])
def test_a_lost_call_is_not_passed_on_and_a_lost_answer_is(tmp_path: Path, plan: CallPlan, passed: int) -> None:
    server = Server()
    assert run(tmp_path, server, plan) is None
    assert len(server.requests) == passed


def test_a_duplicate_is_passed_on_twice_and_answered_once(tmp_path: Path) -> None:
    server = Server()

    async def use(port: int) -> None:
        assert (await call(port, SEND)).body == b"ok"
        while len(server.requests) < 2:
            server.received.clear()
            await server.received.wait()

    asyncio.run(with_proxy(tmp_path, server, CallPlan(duplicate=1.0, late=0.0), use))
    assert server.requests == [SEND, SEND]


def test_a_client_that_waits_to_continue_sends_its_body(tmp_path: Path) -> None:
    server = Server()

    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"PUT /key HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"body")
        assert (await read_response(reader, Message(b"PUT", b""))).body == b"ok"
        writer.close()

    asyncio.run(with_proxy(tmp_path, server, CallPlan(), use))
    assert server.requests == [b"PUT /key HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"]


@pytest.mark.parametrize(
    ("request_line", "answer", "body"),
    [
        (b"GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", b""),
        (b"DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_answers_of_each_form_pass(tmp_path: Path, request_line: bytes, answer: bytes, body: bytes) -> None:
    passed = run(tmp_path, Server(answer), CallPlan(), request_line + b" /key HTTP/1.1\r\nHost: s3\r\n\r\n")
    assert passed is not None
    assert passed.body == body


def test_a_call_without_a_server_is_answered_as_busy(tmp_path: Path) -> None:
    def port() -> int:
        raise ConnectionRefusedError

    async def use() -> bytes:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        address: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        proxy = FaultProxy(port, tmp_path / "plan.json", tmp_path / "counts.json")
        serving = asyncio.create_task(proxy.serve(done, address.set_result))
        answer = await call(await address, SEND)
        done.set_result(None)
        await serving
        return answer.head

    assert asyncio.run(use()).startswith(b"HTTP/1.1 503")


def test_the_proxy_ends_with_its_parent(tmp_path: Path) -> None:
    """The end of a process closes its pipes, also after `kill -9`."""
    files = [str(tmp_path / name) for name in ("state", "plan.json", "counts.json")]
    command = [sys.executable, "-m", "tests.chaos.fault_proxy", *files]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdout is not None
        assert proxy.stdin is not None
        assert int(proxy.stdout.readline()) > 0
        proxy.stdin.close()
        assert proxy.wait() == 0
