"""A mesh for programs with an event loop asks what the other one asks, and waits in the loop."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from asya.client import AsyncMesh, NotEndedError, TaskFailedError, TaskPausedError
from tests.unit.asya.client.conftest import stream, task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.client.mesh_client import MeshClient
    from tests.unit.asya.client.conftest import Clock, FakeGateway


@dataclass
class Checked:
    risk: str


@pytest.fixture
def mesh(client: MeshClient) -> AsyncMesh:
    return AsyncMesh(client=client)


def test_a_task_is_sent_waited_for_and_read(gateway: FakeGateway, mesh: AsyncMesh, clock: Clock) -> None:
    async def program() -> Checked:
        sent = await mesh.send("check", {"total": 3}, then="bill", task_id="t1")
        return await (await sent.wait()).result(Checked)

    gateway.answers = [(404, {}), (404, {}), (200, task("running")), (200, task("succeeded", result={"risk": "low"}))]
    assert asyncio.run(program()) == Checked("low")
    assert [(envelope.id, envelope.route.next) for envelope in gateway.sent] == [("t1", ("bill",))]
    assert len(clock.pauses) == 2


def test_ends_are_the_errors_of_the_other_client(gateway: FakeGateway, mesh: AsyncMesh) -> None:
    async def program() -> None:
        order = await mesh.task("t1")
        gateway.answers = [(200, task("failed", actor="bill"))]
        with pytest.raises(TaskFailedError, match="t1 failed at bill"):
            await (await order.wait()).result()
        gateway.answers = [(200, task("paused"))]
        with pytest.raises(TaskPausedError):
            await order.wait()
        gateway.answers = [(200, task("running", actor="bill"))]
        with pytest.raises(NotEndedError, match="after 10 s: running at bill"):
            await order.wait(timeout=10)

    asyncio.run(program())


def test_a_tool_is_called_and_its_events_are_read(gateway: FakeGateway, mesh: AsyncMesh) -> None:
    async def program() -> list[str]:
        called = await mesh.call("order", idempotency_key="order-7", total=1)
        gateway.answers = [(404, {}), (200, stream(("status", "1", {}))), (200, stream(("final", "2", {})))]
        return [event.name async for event in called.events()]

    gateway.answers = [(202, {"id": "t1"})]
    assert asyncio.run(program()) == ["status", "final"]
    assert gateway.calls[0].headers["idempotency-key"] == "order-7"
    assert [call.query.get("last_event_id") for call in gateway.calls[1:]] == [None, None, "1"]


def test_a_task_is_resumed_canceled_and_replayed(gateway: FakeGateway, mesh: AsyncMesh) -> None:
    async def program() -> str:
        order = await mesh.task("t1")
        await order.resume({"approved": True})
        await order.cancel()
        gateway.answers = [(201, {"id": "t2", "replay_of": "t1", "source": "s3://bucket/key"})]
        return (await order.replay(checkpoint=1)).id

    gateway.answers = [(202, {})]
    assert asyncio.run(program()) == "t2"
    assert [(call.method, call.body) for call in gateway.calls] == [
        ("POST", {"input": {"approved": True}}),
        ("DELETE", None),
        ("POST", {"checkpoint": 1}),
    ]


def test_lists_are_read_as_they_are_used(gateway: FakeGateway, mesh: AsyncMesh) -> None:
    async def program() -> list[str]:
        found = [each.id async for each in mesh.tasks(status="failed")]
        groups = await mesh.failures(tool="order")
        return found + [each.id async for each in (await mesh.task("b")).children()] + [each.error for each in groups]

    group = {"actor": "bill", "error": "KeyError: #", "count": 2, "first": "a", "last": "b", "example": "t"}
    pages: list[Any] = [{"items": [task("failed", "b")], "next_cursor": "x"}, {"items": [task("failed", "a")]}]
    pages += [{"items": [group]}, {"items": []}]
    gateway.answers = [(200, page) for page in pages]
    assert asyncio.run(program()) == ["b", "a", "KeyError: #"]
    assert gateway.calls[-1].query == {"parent": "b", "limit": "100"}


def test_calls_run_beside_each_other_and_not_in_the_loop(
    gateway: FakeGateway, mesh: AsyncMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(8, timeout=30)  # passes when as many calls are at work at once
    threads = set()

    def answer(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        threads.add(threading.current_thread())
        together.wait()
        return 204, b""

    async def program() -> None:
        tasks = [await mesh.task(str(number)) for number in range(8)]
        await asyncio.gather(*(each.cancel() for each in tasks))

    monkeypatch.setattr(gateway, "answer", answer)
    asyncio.run(program())
    assert len(threads) == 8
    assert threading.main_thread() not in threads
