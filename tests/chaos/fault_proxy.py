"""The fault proxy: an HTTP proxy on loopback between the functions and job runs of a local cloud and its MiniStack.

`python -m tests.chaos.fault_proxy <state folder> <plan file> <counts file>`. It prints its port, and ends when its standard
input closes: no crash of its parent leaves it behind. It reads the plan again when its file changes, and writes what it has
done into the counts file each second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from asya_local.servers import LOOPBACK, running_servers
from asya_local.state_folder import StateFolder
from tests.chaos.call_faults import CallPlan, Decision, decide, error_answer, sends_messages, service_of
from tests.chaos.http_messages import LARGEST_HEAD, Message, read_request, read_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
_FILE_SECONDS = 0.5
_CLOSED = (asyncio.IncompleteReadError, ConnectionError)


class Upstream:
    """One connection to MiniStack; it is opened again after MiniStack has closed it."""

    def __init__(self, port: Callable[[], int]) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def pass_on(self, request: Message) -> Message:
        """Pass a request on and return its response.

        Raises:
            ConnectionError, asyncio.IncompleteReadError: MiniStack does not answer.
        """
        reader, writer = await self._open()
        try:
            writer.write(request.bytes)
            response = await read_response(reader, request)
        except _CLOSED:
            self.close()
            raise
        if response.closes:
            self.close()
        return response

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is not None and self._streams[0].at_eof():
            self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection(LOOPBACK, self._port(), limit=LARGEST_HEAD)
        return self._streams


class FaultProxy:
    """Passes calls on, with the faults of the plan; counts them by service and fault.

    Args:
        upstream_port: Returns the port of MiniStack; raises `ConnectionError` while it does not run.
        plan: The file of the plan.
        counts: The file of the counts.
    """

    def __init__(self, upstream_port: Callable[[], int], plan: Path, counts: Path) -> None:
        self._upstream_port = upstream_port
        self._plan_file, self._counts_file = plan, counts
        self._version = 0
        self._plan = CallPlan()
        self._numbers = random.Random(0)
        self._counts: Counter[str] = Counter()
        self._late: set[asyncio.Task[None]] = set()
        self._clients: set[asyncio.Task[None] | None] = set()
        """The event loop itself keeps weak references only."""

    async def serve(self, until: Awaitable[object], announce: Callable[[int], None]) -> None:
        """Serve on a free port, which is announced, until `until` is done."""
        self._read_plan()
        server = await asyncio.start_server(self._serve_client, LOOPBACK, 0, limit=LARGEST_HEAD)
        announce(server.sockets[0].getsockname()[1])
        files = asyncio.create_task(self._follow_files())
        await until
        files.cancel()
        server.close()

    async def _follow_files(self) -> None:
        while True:
            self._read_plan()
            draft = self._counts_file.with_suffix(".draft")
            draft.write_text(json.dumps({**self._counts, "duplicates on their way": len(self._late)}))
            draft.replace(self._counts_file)
            await asyncio.sleep(_FILE_SECONDS)

    def _read_plan(self) -> None:
        """Read the plan if its file has changed; the first one starts the random numbers."""
        if not self._plan_file.exists() or (version := self._plan_file.stat().st_mtime_ns) == self._version:
            return
        self._plan = CallPlan.read(self._plan_file)
        if not self._version:
            self._numbers = random.Random(self._plan.seed)
        self._version = version

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = Upstream(self._upstream_port)
        self._clients.add(asyncio.current_task())
        try:
            with contextlib.suppress(*_CLOSED):
                while True:
                    request = await read_request(reader, writer)
                    response = await self._answer(request, upstream)
                    if response is None:
                        return
                    writer.write(response)
                    await writer.drain()
        finally:
            upstream.close()
            writer.close()
            self._clients.discard(asyncio.current_task())

    async def _answer(self, request: Message, upstream: Upstream) -> bytes | None:
        """The bytes of the answer; None to close the connection without one."""
        service = service_of(request.head)
        decision = decide(self._plan, self._numbers, service, sends=sends_messages(request.head))
        self._counts[f"{service}: calls"] += 1
        if decision.fault:
            self._counts[f"{service}: {decision.fault}"] += 1
        if decision.fault == "error":
            return error_answer(service, self._numbers)
        if decision.fault == "lost call":
            return None
        if decision.delay:
            await asyncio.sleep(decision.delay)
        try:
            response = await upstream.pass_on(request)
        except _CLOSED:
            self._counts[f"{service}: unanswered by MiniStack"] += 1
            return _BUSY
        self._repeat(request, service, decision)
        return None if decision.fault == "lost answer" else response.bytes

    def _repeat(self, request: Message, service: str, decision: Decision) -> None:
        for seconds in decision.duplicates:
            self._counts[f"{service}: {'late ' if seconds else ''}duplicate"] += 1
            task = asyncio.create_task(self._pass_on_again(request, seconds))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _pass_on_again(self, request: Message, seconds: float) -> None:
        await asyncio.sleep(seconds)
        upstream = Upstream(self._upstream_port)
        try:
            await upstream.pass_on(request)
        except _CLOSED:
            self._counts["duplicates that did not arrive"] += 1
        finally:
            upstream.close()


def _port_of_ministack(state: Path) -> Callable[[], int]:
    """The port of the MiniStack of a state folder, which starts after the proxy and keeps its port."""

    @cache
    def port() -> int:
        servers = running_servers(StateFolder.at(state))
        if servers is None:
            raise ConnectionRefusedError("MiniStack is not running")
        return servers.ministack_port

    return port


async def main() -> None:
    """Serve until standard input closes."""
    state, plan, counts = map(Path, sys.argv[1:4])
    closed = asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    await FaultProxy(_port_of_ministack(state), plan, counts).serve(closed, lambda port: print(port, flush=True))


if __name__ == "__main__":
    asyncio.run(main())
