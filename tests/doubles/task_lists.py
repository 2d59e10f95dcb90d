"""Tasks in a table in memory, and their lists."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from asya.protocol.states import TaskStatus
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.failure_groups import Failures
from asya.tasks.aws.index import LAST_ID, ListKey, TaskIndex
from asya.tasks.aws.lists import ListScan, OverdueTasks, TaskLists
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.tasks import Tasks
from asya.tasks.failures import FailureGroup
from asya.tasks.listing import ListQuery, TaskFilter
from asya.tasks.view import TaskView
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo, Table
from tests.doubles.tasks import at

TABLE = "asya-shop-tasks"
ALICE, BOB, NOBODY = "AIDAALICE", "jwt:bob#https://login.example.com/", None
STATUSES: tuple[TaskStatus, ...] = ("running", "succeeded", "failed")
NOW = at(60)


class ReadTables(MemoryDynamo):
    """Tables that note the tasks whose records are read, one by one or in batches."""

    def __init__(self, tables: dict[str, Table], page_size: int) -> None:
        super().__init__(tables, page_size=page_size)
        self.read: list[str] = []

    def batch_get_item(self, **request: Any) -> Any:
        self.read += [key["pk"]["S"] for content in request["RequestItems"].values() for key in content["Keys"]]
        return super().batch_get_item(**request)

    def query(self, **request: Any) -> Any:
        if "IndexName" not in request and ":id" in request["ExpressionAttributeValues"]:
            self.read.append(request["ExpressionAttributeValues"][":id"]["S"])
        return super().query(**request)


class World:
    """Tasks in a table in memory, and their lists."""

    def __init__(self, page_size: int = 1000) -> None:
        self.tables = ReadTables({TABLE: new_table("tasks")}, page_size)
        client: Any = self.tables
        self.store = DynamoTaskStore(client, TABLE, 86400.0, threaded=False)
        self.index = TaskIndex(client, TABLE, threaded=False)
        self.marks = SweepMarks(client, TABLE)
        self.tasks = Tasks(self.store, pytest.fail, threaded=False)
        scan = ListScan(self.index, OverdueTasks(self.index, self.store, self.marks))
        self.lists = TaskLists(scan, self.store, self.tasks)
        self.failures = Failures(self.lists)

    def start(
        self,
        task_id: str,
        owner: str | None = ALICE,
        seconds: float = 0.0,
        status: TaskStatus = "running",
        parent: str | None = None,
    ) -> None:
        time = format_time(at(seconds))
        self.store.put_record(
            TaskRecord(id=task_id, status=status, created_at=time, updated_at=time, owner=owner, parent_id=parent),
            None,
            NOW,
        )

    def start_set(self, size: int, seconds: float = 0.0, parent: str | None = None) -> set[str]:
        """Start tasks at one time, of all owners and states; returns their ids."""
        ids = {f"task-{seconds:g}-{number:03d}" for number in range(size)}
        choices = itertools.cycle(itertools.product(STATUSES, (ALICE, BOB, NOBODY)))
        for task_id, (status, owner) in zip(sorted(ids), choices, strict=False):
            self.start(task_id, ALICE if parent else owner, seconds, status, parent)
        return ids

    def pages(self, limit: int, owner: str | None = None, parent: str | None = None) -> Iterator[list[str]]:
        """The ids on each page."""
        for page in self.filtered_pages(TaskFilter(parent=parent), limit, owner):
            yield [task.id for task in page]

    def filtered_pages(self, wanted: TaskFilter, limit: int, owner: str | None = None) -> Iterator[list[TaskView]]:
        """Each page, as a client reads them with cursors; an owner sees its own tasks."""
        after: tuple[str, ...] = ()
        while True:
            query = ListQuery("tasks", wanted, limit=limit, after=after)
            page = self.lists.page(query, owner, NOW)
            yield page.tasks
            if page.next is None:
                return
            after = self._continued(page.next, after, owner)

    def failure_pages(self, wanted: TaskFilter, owner: str | None) -> Iterator[list[FailureGroup]]:
        """The groups of each page of failed tasks."""
        after: tuple[str, ...] = ()
        while True:
            query = ListQuery("failures", wanted, after=after)
            page = self.failures.page(query, owner, NOW)
            yield page.groups
            if page.next is None:
                return
            after = self._continued(page.next, after, owner)

    def _continued(self, key: ListKey, after: tuple[str, ...], owner: str | None) -> tuple[str, ...]:
        if owner is not None:
            self.check_key(key, owner)
        assert after == () or key < after, "the list does not end"
        return tuple(key)

    def ids_of(self, owner: str) -> set[str]:
        items = self.tables.tables[TABLE].items
        return {task_id for (task_id, _), item in items.items() if item.get("owner") == {"S": owner}}

    def check_key(self, key: ListKey, owner: str) -> None:
        """A cursor names no tasks and no principals of others."""
        assert key.listed_at.partition("#")[2] in ("", owner)
        assert key.task_id in {"", LAST_ID} | self.ids_of(owner)
