"""Starts, reads and stores tasks of the deployed gateway."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from asya.protocol import names
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from tests.cloud.deployed_cloud import until
from tests.cloud.environment import now

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

TERMINAL = {"succeeded", "failed", "canceled"}


def start(caller: ApiCaller, actor: str, payload: object = None, **body: object) -> str:
    """Starts a task; returns its id."""
    status, content = caller.call("POST", "/api/v1/mesh", {"payload": payload, **body}, actor=actor)
    assert status == 201, content
    return str(content["id"])


def read_task(caller: ApiCaller, task_id: str) -> Any:
    """Reads a task as its caller sees it."""
    status, content = caller.call("GET", f"/api/v1/mesh/{task_id}")
    assert status == 200, content
    return content


def wait_for_end(caller: ApiCaller, task_id: str) -> Any:
    """Waits for the end of a task; returns the task."""

    def poll() -> Any:
        task = read_task(caller, task_id)
        return task if task["status"] in TERMINAL else None

    return until(poll, f"task {task_id} to end")


def list_items(caller: ApiCaller, path: str, **query: str) -> list[Any]:
    """Reads all pages of a list."""
    items: list[Any] = []
    while True:
        status, content = caller.call("GET", path, **query)
        assert status == 200, content
        items += content["items"]
        if "next_cursor" not in content:
            return items
        query["cursor"] = content["next_cursor"]


def create_record(gateway: DeployedCloud, *, age: timedelta = timedelta(0), deadline: timedelta | None = None) -> str:
    """Stores the record of a running task without an envelope; returns its id."""
    at = now()
    created_at = format_time(at - age)
    record = TaskRecord(
        id=str(uuid4()),
        status="running",
        created_at=created_at,
        updated_at=created_at,
        deadline_at=format_time(at + deadline) if deadline is not None else None,
    )
    store = DynamoTaskStore(gateway.client("dynamodb"), names.table_name("gateway", "tasks"), 86400.0)
    store.put_record(record, None, at)
    return record.id
