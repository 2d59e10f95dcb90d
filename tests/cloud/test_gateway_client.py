"""Tests the Python client on a deployed mesh: it sends, calls tools, waits, follows and resumes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from asya.client import AsyncMesh, Mesh, TaskFailedError, TaskPausedError

if TYPE_CHECKING:
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

LARGE = "x" * 300_000


@dataclass
class Order:
    text: str
    total: Decimal


@pytest.fixture
def mesh(gateway: DeployedCloud) -> Mesh:
    """The gateway mesh, as a program of its operator uses it."""
    return Mesh(client=gateway.mesh)


def test_a_payload_goes_out_and_comes_back_in_its_type(mesh: Mesh) -> None:
    order = Order("tea", Decimal("9.50"))
    task_id = f"order-{uuid4()}"
    task = mesh.send("echo", order, then="echo", task_id=task_id)
    assert task.wait().result(Order) == order
    assert mesh.send("echo", order, task_id=task_id) == task
    assert task.view().generation == 0
    assert task.id in (each.id for each in mesh.tasks(status="succeeded"))


def test_a_payload_of_any_size_goes_out_and_comes_back(mesh: Mesh) -> None:
    assert mesh.send("echo", {"text": LARGE}).wait().result() == {"text": LARGE}


def test_a_failure_names_its_actor_and_its_error(mesh: Mesh) -> None:
    with pytest.raises(TaskFailedError) as caught:
        mesh.send("slow", {"seconds": "many"}).wait().result()
    assert (caught.value.actor, caught.value.type) == ("slow", "TypeError")


def test_a_question_is_answered_once_and_a_repeated_call_starts_no_task(mesh: Mesh) -> None:
    key = str(uuid4())
    task = mesh.call("ask", {"text": "Ship it?"}, idempotency_key=key)
    with pytest.raises(TaskPausedError):
        task.wait()
    assert mesh.call("ask", {"text": "Ship it?"}, idempotency_key=key) == task
    assert task.resume({"approved": True}).wait().result() == {"text": "Ship it?", "approved": True}


def test_partials_come_with_the_stream(mesh: Mesh) -> None:
    task = mesh.send("talk", {"messages": 3, "seconds": 0})
    events = list(task.events())
    assert [event.data["data"]["number"] for event in events if event.name == "partial"] == [0, 1, 2]
    assert (events[-1].name, events[-1].data["status"]) == ("final", "succeeded")
    assert len({event.cursor for event in events}) == len(events)


def test_an_event_loop_waits_for_several_tasks_at_once(gateway: DeployedCloud) -> None:
    async def result(mesh: AsyncMesh, number: int) -> Any:
        task = await mesh.send("echo", {"number": number})
        return await (await task.wait()).result()

    async def last_event(mesh: AsyncMesh) -> str:
        task = await mesh.send("echo", {})
        return [event.name async for event in task.events()][-1]

    async def program() -> list[Any]:
        mesh = AsyncMesh("gateway", state=gateway.state)
        return await asyncio.gather(last_event(mesh), *(result(mesh, number) for number in range(2)))

    assert asyncio.run(program()) == ["final", *({"number": number} for number in range(2))]
