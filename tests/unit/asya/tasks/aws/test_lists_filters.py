"""Filters of lists: a filtered list is the whole list, filtered (`protocol §13.list.filters`)."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.protocol.envelope import Route
from asya.protocol.exact_json import encode_json
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws import index as task_index
from asya.tasks.aws import lists
from asya.tasks.aws import lists as task_lists
from asya.tasks.aws.sweep_marks import SweepMark
from asya.tasks.listing import TaskFilter, TimelineEntry
from asya.tasks.view import TaskView
from tests.doubles.listed_tasks import filters, meshes
from tests.doubles.task_lists import ALICE, NOW, World
from tests.doubles.tasks import at, event


def world_of(tasks: list[TaskRecord]) -> World:
    world = World(page_size=7)
    for number, task in enumerate(tasks):
        world.store.put_record(task, None, at(0))
        if number % 3 == 0 and not task.is_terminal:
            world.tasks.report([event(task.id, "received", 1)], at(1), may_create=False)
    return world


def listed(world: World, wanted: TaskFilter, limit: int = 3, owner: str | None = None) -> list[TaskView]:
    return list(chain(*world.filtered_pages(wanted, limit, owner)))


@pytest.mark.rule("13.list.filters", "13.list.cursor")
@settings(max_examples=25)
@given(meshes(), filters(), st.sampled_from([None, ALICE]), st.booleans())
@pytest.mark.slow
def test_a_filtered_list_is_the_whole_list_filtered(
    tasks: list[TaskRecord], wanted: TaskFilter, owner: str | None, is_tight: bool
) -> None:
    """Under tight limits its pages are short, and it still loses and repeats nothing."""
    world = world_of(tasks)
    with pytest.MonkeyPatch.context() as patch:
        if is_tight:
            patch.setattr(task_index, "MIN_PAGE_SIZE", 2)
            patch.setattr(task_lists, "SUMMARY_BATCH", 2)
            patch.setattr(task_lists, "MAX_SUMMARIES", 4)
            patch.setattr(task_lists, "MAX_INDEX_PAGES", 3)
            patch.setattr(task_lists, "PAGE_BYTES", 400)
        everything = listed(world, TaskFilter(), owner=owner)
        assert listed(world, wanted, owner=owner) == [task for task in everything if wanted.matches(task)]
    assert {task.id for task in everything} == {task.id for task in tasks if owner in (None, task.owner)}


@pytest.mark.rule("13.list.filters", "13.children")
@settings(max_examples=25)
@given(meshes(), filters())
@pytest.mark.slow
def test_the_children_of_a_task_are_filtered_alike(tasks: list[TaskRecord], wanted: TaskFilter) -> None:
    world = world_of(tasks)
    children = listed(world, TaskFilter(parent="parent"))
    assert {task.id for task in children} == {task.id for task in tasks if task.parent_id}
    found = listed(world, TaskFilter(**(wanted.parameters() | {"roots": wanted.roots, "parent": "parent"})))  # type: ignore[arg-type]
    assert found == [task for task in children if wanted.matches(task)]


def start(world: World, count: int, status: str, **more: str) -> None:
    for number in range(count):
        time = format_time(at(number))
        record = TaskRecord(id=f"{status}-{number}", status=status, created_at=time, updated_at=time, **more)  # type: ignore[arg-type]
        world.store.put_record(record, None, at(0))


@pytest.mark.rule("13.list.cost")
def test_failed_tasks_are_found_without_a_read_of_any_other() -> None:
    world = World()
    world.marks.write(SweepMark(NOW, entered=NOW))
    for status in ("succeeded", "running", "canceled"):
        start(world, 40, status, deadline_at=format_time(at(3_000)))
    start(world, 5, "failed", actor="bill")
    world.tables.read.clear()
    assert len(listed(world, TaskFilter(status="failed", actor="bill"), limit=100)) == 5
    assert {key.partition("-")[0] for key in world.tables.read} == {"failed", "canceled"}


@pytest.mark.rule("13.list.cost")
def test_a_page_of_rare_tasks_reads_so_many_and_ends_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_lists, "MAX_SUMMARIES", 100)
    monkeypatch.setattr(task_lists, "SUMMARY_BATCH", 20)
    world = World()
    start(world, 240, "succeeded")
    start(world, 1, "failed", tool="order")
    world.tables.read.clear()
    pages = list(world.filtered_pages(TaskFilter(tool="order"), 20))
    assert (len(pages[0]), len(pages) > 1, [task.id for page in pages for task in page]) == (0, True, ["failed-0"])
    assert len(world.tables.read) == 241 + 1


@pytest.mark.rule("13.list.bytes")
@given(sizes=st.lists(st.integers(0, 2_000), min_size=1, max_size=8), room=st.integers(0, 8_000))
@settings(max_examples=30)
def test_a_page_has_so_many_bytes_or_one_item(sizes: list[int], room: int) -> None:
    """Who writes routes of 128 KiB makes no list, and no timeline, too large for an answer."""
    world = World()
    for number, size in enumerate(sizes):
        time = format_time(at(number))
        record = TaskRecord(id=f"t{number}", status="running", created_at=time, updated_at=time)
        world.store.put_record(record, None, at(0))
        long = event(record.id, "received", route=Route((), "a" * size, ()))
        world.tasks.report(
            [long, event("t0", "received", number + 1, actor="a" * (size // 2))], at(1), may_create=False
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_lists, "PAGE_BYTES", room)
        pages = list(world.filtered_pages(TaskFilter(), 5))
        hops, after = list[list[TimelineEntry]](), None
        while not hops or after is not None:
            page = world.lists.timeline("t0", after, 5, NOW)
            hops.append(page.hops)
            after = page.next
    assert [task.id for page in pages for task in page] == [f"t{number}" for number in reversed(range(len(sizes)))]
    assert [hop.position for found in hops for hop in found] == list(range(len(sizes) + 1))
    assert all(len(found) == 1 or len(encode_json(found)) <= room + 9 for found in (*pages, *hops))


@pytest.mark.rule("13.backstop.read", "13.list.status")
@pytest.mark.parametrize("minutes", [None, 1, 30, 600])
@pytest.mark.parametrize("most", [0, 250])
def test_overdue_tasks_are_listed_as_failed_however_far_the_sweep_is_behind(
    monkeypatch: pytest.MonkeyPatch, minutes: int | None, most: int
) -> None:
    monkeypatch.setattr(lists, "MAX_DUE", most)
    world = World()
    if minutes is not None:
        world.marks.write(SweepMark(at(60 - minutes * 60), entered=NOW))
    start(world, 3, "running", deadline_at=format_time(at(59 if minutes is None else 60 - (minutes - 1) * 60)))
    start(world, 1, "paused", deadline_at=format_time(at(30)))
    failed = listed(world, TaskFilter(status="failed"), limit=2)
    assert [task.id for task in failed] == ["running-2", "running-1", "running-0"]
    assert listed(world, TaskFilter(status="failed", error="timed out")) == failed
    assert listed(world, TaskFilter(status="running")) == []
