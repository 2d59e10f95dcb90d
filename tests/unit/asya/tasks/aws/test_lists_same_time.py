"""Lists of tasks that were created at the same time, such as the children of a fan-out (`protocol §13`, lists)."""

import itertools

import pytest

from asya.protocol.times import format_time
from asya.tasks.aws import index as task_index
from asya.tasks.aws import lists as task_lists
from asya.tasks.aws.index import LAST_ID, NEWEST, ListKey, shard_of
from asya.tasks.listing import ListQuery
from tests.doubles.task_lists import ALICE, BOB, NOW, World
from tests.doubles.tasks import at


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
        page = world.lists.page(query, owner, NOW)
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
