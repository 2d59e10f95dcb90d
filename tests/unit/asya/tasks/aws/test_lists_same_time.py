"""Lists of tasks that were created at the same time, such as the children of a fan-out (`protocol §13`, lists)."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from asya.protocol.task import TaskRecord, TaskStatus
from asya.protocol.times import format_time
from asya.tasks.aws import index as task_index
from asya.tasks.aws import lists as task_lists
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.index import LAST_ID, NEWEST, ListKey, TaskIndex, shard_of
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery
from asya.testing.dynamo.tables import Index, MemoryDynamo, Table
from tests.doubles.dynamo import TASK_INDEXES
from tests.doubles.tasks import at

TABLE = "asya-shop-tasks"
ALICE, BOB, NOBODY = "AIDAALICE", "jwt:bob#https://login.example.com/", None
STATUSES: tuple[TaskStatus, ...] = ("running", "succeeded", "failed")
NOW = at(60)


class World:
    """Tasks in a table in memory, and their lists."""

    def __init__(self, page_size: int = 1000) -> None:
        indexes = {name: Index(partition, sort, included) for name, (partition, sort, included) in TASK_INDEXES.items()}
        self.tables = MemoryDynamo({TABLE: Table(indexes)}, page_size=page_size)
        client: Any = self.tables
        self.store = DynamoTaskStore(client, TABLE, 86400.0, threaded=False)
        self.index = TaskIndex(client, TABLE, threaded=False)
        self.lists = TaskLists(self.index, self.store, Tasks(self.store, pytest.fail, threaded=False))

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
        """The ids on each page, as a client reads them with cursors; an owner sees its own tasks."""
        after: tuple[str, ...] = ()
        while True:
            query = ListQuery("tasks", parent=parent, limit=limit, after=after)
            page = self.lists.page(query, owner, lambda of: owner in (None, of), NOW)
            yield [task.id for task in page.tasks]
            if page.next is None:
                return
            if owner is not None:
                self.check_key(page.next, owner)
            assert after == () or page.next < after, "the list does not end"
            after = tuple(page.next)

    def ids_of(self, owner: str) -> set[str]:
        items = self.tables.tables[TABLE].items
        return {task_id for (task_id, _), item in items.items() if item.get("owner") == {"S": owner}}

    def check_key(self, key: ListKey, owner: str) -> None:
        """A cursor names no tasks and no principals of others."""
        assert key.listed_at.partition("#")[2] in ("", owner)
        assert key.task_id in {"", LAST_ID} | self.ids_of(owner)


@pytest.fixture(params=[2, 50])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The items per query of a shard."""
    size: int = request.param
    monkeypatch.setattr(task_index, "MIN_PAGE_SIZE", size)
    return size


@pytest.mark.rule("13.list.cursor")
@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize("page_size", [1, 1000])
def test_all_tasks_of_one_time_are_listed_once(size: int, limit: int, page_size: int) -> None:
    world = World(page_size)
    ids = set().union(*(world.start_set(24, seconds) for seconds in (0.0, 4000.0)))
    found = list(itertools.chain(*world.pages(limit)))
    assert sorted(found) == sorted(ids)
    times = [float(task_id.split("-")[1]) for task_id in found]
    assert times == sorted(times, reverse=True)


@pytest.mark.rule("13.list.cursor")
@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize("owner", [ALICE, BOB])
@pytest.mark.parametrize("budget", [2, 25])
def test_owners_find_their_own_tasks_of_one_time(
    monkeypatch: pytest.MonkeyPatch, size: int, limit: int, owner: str, budget: int
) -> None:
    """A page may also end amid tasks of others, and its key names none of them."""
    monkeypatch.setattr(task_lists, "MAX_INDEX_PAGES", budget)
    world = World()
    world.start_set(30)
    world.start_set(30, 1.0)
    own = world.ids_of(owner)
    assert len(own) == 20
    assert sorted(itertools.chain(*world.pages(limit, owner))) == sorted(own)


@pytest.mark.rule("13.list.cursor", "13.children")
@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize("owner", [None, ALICE])
def test_children_of_one_time_are_listed_once(size: int, limit: int, owner: str | None) -> None:
    world = World(page_size=4)
    ids = world.start_set(30, parent="root") | world.start_set(3, 1.0, parent="root")
    world.start_set(9, 2.0, parent="other")
    assert sorted(itertools.chain(*world.pages(limit, owner, "root"))) == sorted(ids)


@pytest.mark.rule("13.children")
def test_a_fan_out_larger_than_the_pages_of_the_index_is_listed() -> None:
    world = World()
    ids = world.start_set(450, parent="root")
    assert sorted(itertools.chain(*world.pages(50, ALICE, "root"))) == sorted(ids)


@pytest.mark.rule("13.list.cursor")
@pytest.mark.parametrize("limit", [1, 2])
def test_tasks_that_start_while_a_list_is_read_lose_and_repeat_none(size: int, limit: int) -> None:
    """New tasks of the same time may be missing, as they come after their page; the earlier ones may not."""
    world = World(page_size=3)
    ids = world.start_set(24)
    found: list[str] = []
    for number, page in enumerate(world.pages(limit)):
        found += page
        world.start(f"task-0-{number % 24:03d}-new", BOB)
        world.start(f"new-{number}", ALICE, 1.0)
    assert len(found) == len(set(found))
    assert ids <= set(found)


@pytest.mark.rule("13.list.cursor")
@pytest.mark.parametrize("owner", [None, ALICE])
def test_cursors_of_the_earlier_form_go_on(size: int, owner: str | None) -> None:
    """It names a task, in the list or gone since, or a time alone."""
    world = World()
    for number in range(24):
        world.start(f"task-{number:02d}")
    time = format_time(at(0))
    for key, expected in (
        (ListKey(f"{time}#{ALICE}", "task-20"), 20),
        (ListKey(f"{time}#{ALICE}", "task-19-gone"), 20),
        (ListKey(f"{time}#{ALICE}", LAST_ID), 24),
        (ListKey(f"{time}#{BOB}", LAST_ID), 24),
        (ListKey(time, ""), 0),
        (ListKey(time[: len("2026-11-20T09")], ""), 0),
    ):
        query = ListQuery("tasks", limit=100, after=tuple(key))
        page = world.lists.page(query, owner, lambda _: True, NOW)
        assert [task.id for task in page.tasks] == [f"task-{number:02d}" for number in range(expected)][::-1]


@pytest.mark.rule("13.list.cursor")
def test_each_page_of_an_index_ends_below_the_one_before(size: int) -> None:
    world = World(page_size=3)
    ids = world.start_set(24, parent="root") | world.start_set(24, 1.0, parent="root")
    assert {shard_of(task_id) for task_id in ids} == set(range(task_index.SHARDS))
    before, found = NEWEST, []
    while True:
        page = world.index.children("root", before, 1)
        found += page.keys
        if page.complete_to is None:
            break
        assert page.complete_to < before
        before = page.complete_to
    assert found == sorted(set(found), reverse=True)
    assert {key.task_id for key in found} == ids
