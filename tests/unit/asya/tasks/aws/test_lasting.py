"""Tasks that stay open move to the lists of open tasks and of deadlines; the end of others writes no index (`protocol §13`)."""

from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws import lasting
from asya.tasks.aws.index import LASTING_AGE, SOON, WRITTEN_AGE, minute_of
from asya.tasks.aws.lasting import LastingTasks
from asya.tasks.aws.sweep_marks import SweepMark
from asya.tasks.aws.task_store import StoredRecord, TaskStoreError
from asya.tasks.listing import ListQuery, TaskFilter
from asya.tasks.view import is_overdue
from tests.doubles.task_lists import TABLE, World
from tests.doubles.tasks import at, event, route_at

STATUSES = ("pending", "running", "paused", "succeeded", "failed", "canceled")
MINUTES = st.integers(0, 90)


def started(task_id: str, seconds: float, timeout: float | None = None) -> TaskRecord:
    time = format_time(at(seconds))
    deadline = format_time(at(seconds + timeout)) if timeout is not None else None
    return TaskRecord(
        id=task_id,
        status="pending",
        created_at=time,
        updated_at=time,
        deadline_at=deadline,
        route=route_at(0),
        started_by=StartedBy(kind="caller"),
    )


def entries(world: World, task_id: str) -> dict[str, str]:
    """The keys of the indexes that the record of a task has."""
    item: Any = world.tables.tables[TABLE].items[task_id, "record"]
    return {name: item[name]["S"] for name in ("listed_in", "due_in") if name in item}


def enter(world: World, seconds: float) -> None:
    """The part of a sweep that enters tasks; no deadline is swept."""
    mark = world.marks.read() or SweepMark(at(0))
    entered = LastingTasks(world.index, world.store, threaded=False).enter(
        mark.entered, at(seconds), is_over=lambda: False
    )
    world.marks.write(mark._replace(entered=entered))


def put(world: World, record: TaskRecord, seconds: float) -> None:
    stored = world.store.records([record.id], at(seconds)).get(record.id)
    assert isinstance(world.store.put_record(record, stored, at(seconds)), StoredRecord)


def ids(world: World, status: str | None, seconds: float) -> list[str]:
    found, after = list[str](), tuple[str, ...]()
    while True:
        query = ListQuery("tasks", TaskFilter(status=status, resolved=True), limit=3, after=after)
        page = world.lists.page(query, None, at(seconds))
        found += [task.id for task in page.tasks]
        if page.next is None:
            return found
        after = tuple(page.next)


@pytest.mark.rule("13.list.writes")
def test_a_task_that_succeeds_within_minutes_has_one_entry() -> None:
    world = World()
    put(world, started("t", 0, timeout=6 * 3600), 0)
    born = entries(world, "t")
    assert born == {"listed_in": "recent#2026-11-20T09#0"}
    put(world, replace(started("t", 0, timeout=6 * 3600), status="succeeded"), 200)
    enter(world, 3600)
    assert entries(world, "t") == born


@pytest.mark.rule("13.list.writes")
def test_an_open_task_is_entered_once_after_minutes() -> None:
    world = World()
    put(world, started("t", 0, timeout=6 * 3600), 0)
    enter(world, LASTING_AGE.total_seconds())
    assert entries(world, "t") == {"listed_in": "recent#2026-11-20T09#0"}
    enter(world, LASTING_AGE.total_seconds() + 1)
    assert entries(world, "t") == {"listed_in": "open#2026-11-20T09#0", "due_in": "2026-11-20T15:00#0"}
    put(world, replace(started("t", 0, timeout=6 * 3600), status="succeeded", lasts=True), 4_000)
    assert entries(world, "t") == {"listed_in": "succeeded#2026-11-20T09#0", "due_in": "2026-11-20T15:00#0"}


@pytest.mark.rule("13.list.writes")
@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_a_failure_is_among_the_failed_ones_at_once(status: Any) -> None:
    world = World()
    put(world, started("t", 0), 0)
    put(world, replace(started("t", 0), status=status), 1)
    assert entries(world, "t") == {"listed_in": "failed#2026-11-20T09#0"}


@pytest.mark.rule("13.list.writes")
def test_whoever_writes_an_older_open_task_enters_it_at_once() -> None:
    """The sweep may have passed: a redrive, a late first report, a repetition of a start that died."""
    world = World()
    old = -WRITTEN_AGE.total_seconds()
    enter(world, 3600)
    put(world, started("late", old), 0)
    put(world, replace(started("redriven", old), status="failed"), 0)
    put(world, replace(started("redriven", old), generation=1), 1)
    put(world, started("young", old + 1), 0)
    found = {
        task_id: entries(world, task_id)["listed_in"].partition("#")[0] for task_id in ("late", "redriven", "young")
    }
    assert found == {"late": "open", "redriven": "open", "young": "recent"}


def test_a_start_that_is_repeated_finds_a_record_that_was_entered_meanwhile() -> None:
    world = World()
    record = started("t", 0)
    assert world.tasks.create(record, at(0))
    enter(world, 700)
    assert world.tasks.create(record, at(701))
    assert not world.tasks.create(replace(record, owner="AIDABOB"), at(702))


def test_a_task_that_ends_while_it_is_entered_stays_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    put(world, started("t", 0), 0)
    stale = world.store.records(["t"], at(0))
    put(world, replace(started("t", 0), status="succeeded"), 100)
    monkeypatch.setattr(type(world.store), "records", lambda *_, **__: stale)
    monkeypatch.setattr(type(world.store), "summaries", lambda *_: {"t": stale["t"].record})
    enter(world, 3600)
    assert entries(world, "t") == {"listed_in": "recent#2026-11-20T09#0"}


def test_a_sweep_whose_time_is_over_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "BATCH_SIZE", 2)
    world = World()
    for number in range(9):
        put(world, started(f"t{number}", number * 1_000), number * 1_000)
    now, entered = at(20_000), at(-10_000)
    sweeps = 0
    while entered < now - LASTING_AGE:
        entered = LastingTasks(world.index, world.store, threaded=False).enter(entered, now, is_over=lambda: True)
        sweeps += 1
    assert {entries(world, f"t{number}")["listed_in"].partition("#")[0] for number in range(9)} == {"open"}
    assert 1 < sweeps < 9


def test_endless_conflicts_end_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    put(world, started("t", 0), 0)
    stored = world.store.records(["t"], at(0))["t"]
    conflict = type("Conflict", (), {"current": stored})()
    monkeypatch.setattr(type(world.store), "put_record", lambda *_: conflict)
    with pytest.raises(TaskStoreError, match="10 attempts met concurrent writes"):
        enter(world, 3600)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[float, str, int]]:
    """What happens, in order: (second, status of a task, number of the task); `sweep` and `look` are of all tasks."""
    steps = st.tuples(MINUTES, st.sampled_from((*STATUSES, "sweep", "sweep", "look")), st.integers(0, 7))
    return [(minute * 60.0, what, number) for minute, what, number in sorted(draw(st.lists(steps, max_size=40)))]


@pytest.mark.rule("13.list.status", "13.backstop.read", "13.list.writes")
@settings(max_examples=60, deadline=None)
@example([(0.0, "sweep", 0), (60.0, "pending", 0)], [3_000.0] * 8)
@given(stories(), st.lists(st.sampled_from((None, 60.0, 900.0, 3_000.0, 5_000.0)), min_size=8, max_size=8))
def test_lists_and_deadlines_lose_no_task_however_sweeps_come(
    story: list[tuple[float, str, int]], timeouts: list[float | None]
) -> None:
    """Tasks begin, end and are reopened at any time, and sweeps come often or never."""
    world = World(page_size=3)
    records = dict[str, TaskRecord]()
    for seconds, what, number in chain(story, [(5_401.0, "look", 0)]):
        if what == "sweep":
            enter(world, seconds)
        elif what != "look":
            task_id = f"t{number}"
            before = records.get(task_id) or started(task_id, seconds, timeouts[number])
            record = replace(before, status=what)  # type: ignore[arg-type]
            put(world, record, seconds)
            records[task_id] = record = world.store.records([task_id], at(seconds))[task_id].record
        else:
            shown = {
                task_id: "failed" if is_overdue(record, at(seconds)) else record.status
                for task_id, record in records.items()
            }
            newest_first = sorted(shown, key=lambda task_id: (records[task_id].created_at, task_id), reverse=True)
            for status in (None, *STATUSES):
                expected = [task_id for task_id in newest_first if status in (None, shown[task_id])]
                assert ids(world, status, seconds) == expected
            check_deadlines(world, records)


def check_deadlines(world: World, records: dict[str, TaskRecord]) -> None:
    """Each deadline of an open task is in the index up to the time that the sweep of deadlines goes by."""
    mark = world.marks.read()
    known_until = mark.entered + SOON if mark is not None else at(0)
    for task_id, record in records.items():
        if record.deadline_at is not None and not record.is_terminal and parse_time(record.deadline_at) < known_until:
            assert entries(world, task_id)["due_in"].startswith(minute_of(record.deadline_at))


@pytest.mark.rule("13.running")
def test_the_hops_alone_say_that_the_task_of_a_call_runs() -> None:
    world = World()
    others = {
        "watched": replace(started("watched", 0), is_watched=True),
        "trigger": replace(started("trigger", 0), started_by=StartedBy(kind="trigger", name="night")),
        "replay": replace(started("replay", 0), started_by=StartedBy(kind="replay", name="t")),
        "message": replace(started("message", 0), started_by=None),
    }
    for record in (started("call", 0), *others.values()):
        put(world, record, 0)
        world.tasks.report([event(record.id, "processing", seconds=2)], at(3), may_create=True)
    found = {task_id: each.record.status for task_id, each in world.store.records(["call", *others], at(4)).items()}
    assert found == {"call": "pending", **dict.fromkeys(others, "running")}
    assert ids(world, "running", 4) == sorted(("call", *others), reverse=True)
    assert ids(world, "pending", 4) == []


def test_deadlines_that_are_late_are_late_enough_for_the_sweep() -> None:
    """The sweep comes every minute, and each function ends within minutes after it has read the clock."""
    assert timedelta(minutes=2) <= WRITTEN_AGE <= LASTING_AGE - timedelta(minutes=5)
    assert LASTING_AGE + timedelta(minutes=5) <= SOON
