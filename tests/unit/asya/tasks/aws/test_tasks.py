"""protocol §13: reports and records; at least once, out of order, concurrently."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.events import EventResult, TaskEvent
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.task_store import Conflict, StoredRecord, TaskStoreError
from asya.tasks.aws.tasks import Tasks
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import ACTORS, at, event, hop, route_at


def tasks_over(store: MemoryTaskStore, warnings: list[str] | None = None) -> Tasks:
    return Tasks(store, (warnings if warnings is not None else []).append)


def report(tasks: Tasks, *events: TaskEvent, may_create: bool = True) -> list[int]:
    return [result.status for result in tasks.report(events, at(50), may_create=may_create)]


def created(tasks: Tasks, task_id: str = "t", owner: str | None = None, deadline_at: str | None = None) -> None:
    moment = format_time(at(0))
    record = TaskRecord(id=task_id, status="pending", created_at=moment, updated_at=moment, route=route_at(0))
    tasks.create(replace(record, owner=owner, deadline_at=deadline_at), at(0))


def test_a_task_from_start_to_end() -> None:
    tasks = tasks_over(MemoryTaskStore())
    created(tasks, owner="AIDA")
    story = []
    end = event("t", "succeeded", 3, 40, result=Raw(b"1"))
    for reports in [[], hop("t", 0), hop("t", 1)[:2], hop("t", 1)[2:], [end]]:
        assert set(report(tasks, *reports)) <= {204}
        shown = tasks.read("t", at(60))
        assert shown is not None
        story.append((shown.status, shown.progress_percent, shown.actor))
    assert story == [
        ("pending", 0, None),
        ("running", 33, "inspect-dataset"),
        ("running", 48, "clean-flights"),
        ("running", 66, "clean-flights"),
        ("succeeded", 100, "publish-report"),
    ]
    assert shown is not None
    assert (shown.result, shown.owner, shown.route) == (Raw(b"1"), "AIDA", route_at(3))


def test_unknown_tasks_are_created_for_the_mesh_and_404_for_operators() -> None:
    store = MemoryTaskStore()
    tasks = tasks_over(store)
    created(tasks, "known")
    reports = [*hop("known", 0), *hop("new", 0), event("new", "failed", 1, 20)]
    results = tasks.report(reports, at(50), may_create=False)
    assert [result.status for result in results] == [204] * 3 + [404] * 4
    assert results[-1] == EventResult(id="new", status=404, error="there is no task new")
    assert tasks.read("new", at(60)) is None
    assert report(tasks, *reports) == [204] * 7
    shown = tasks.read("new", at(60))
    assert shown is not None
    assert (shown.status, shown.progress_percent) == ("failed", 33)


@pytest.mark.rule("13.owner.root")
def test_a_child_has_the_owner_of_its_root() -> None:
    tasks = tasks_over(MemoryTaskStore())
    created(tasks, "root", owner="AIDA")
    report(tasks, event("child", "received", 1, parent_id="root", root_id="root"))
    shown = tasks.read("child", at(60))
    assert shown is not None
    assert (shown.owner, shown.parent_id, shown.root_id) == ("AIDA", "root", "root")


def test_late_reports_about_an_ended_task_are_taken_and_change_nothing_but_the_hops() -> None:
    tasks = tasks_over(MemoryTaskStore())
    assert report(tasks, event("t", "failed", 2, 40, reason="RuntimeError")) == [204]
    before = tasks.read("t", at(60))
    assert report(tasks, *hop("t", 0), event("t", "succeeded", 3, 45), event("t", "failed", 2, 46)) == [204] * 5
    after = tasks.read("t", at(60))
    assert before is not None
    assert after == replace(before, progress_percent=33, created_at=event("t", "received").at)


def test_writes_per_task() -> None:
    """One put per hop, and of the record: creation, first hop, end; reads for records outside the cache."""
    store = MemoryTaskStore()
    tasks = tasks_over(store)
    created(tasks)
    for position in range(len(ACTORS)):
        report(tasks, *hop("t", position))
    report(tasks, event("t", "succeeded", 3, 40))
    assert (store.writes, store.reads) == (3 + 3, 1)


def test_a_raw_message_costs_two_writes_of_its_record() -> None:
    store = MemoryTaskStore()
    tasks = tasks_over(store)
    report(tasks, event("t", "registered", owner="AIDA"))
    report(tasks, *hop("t", 0))
    report(tasks, event("t", "succeeded", 3, 40))
    assert (store.writes, store.reads) == (2 + 1, 0)


def test_a_registration_by_an_operator_needs_a_task() -> None:
    tasks = tasks_over(MemoryTaskStore())
    assert report(tasks, event("t", "registered", owner="AIDA"), may_create=False) == [404]
    created(tasks)
    assert report(tasks, event("t", "registered", owner="AIDA"), may_create=False) == [204]


def test_only_the_most_recent_tasks_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.tasks.aws.tasks.CACHE_SIZE", 2)
    store = MemoryTaskStore()
    tasks = tasks_over(store)
    for task_id in ("a", "b", "c"):
        report(tasks, *hop(task_id, 0))
    read_before = store.reads
    report(tasks, *hop("b", 1), *hop("c", 1))
    assert store.reads == read_before
    report(tasks, *hop("a", 1))
    assert store.reads == read_before + 1


def test_failures_are_shown_per_event_and_a_retry_succeeds() -> None:
    store, warnings = MemoryTaskStore(), list[str]()
    tasks = tasks_over(store, warnings)
    created(tasks, "a")
    created(tasks, "b")
    store.refused_hops = {"b"}
    assert report(tasks, *hop("a", 0)[:1], *hop("b", 0)[:1]) == [204, 503]
    store.refused_hops = set()
    assert report(tasks, *hop("a", 0)[:1], *hop("b", 0)[:1]) == [204, 204]
    store.broken = True
    assert report(tasks, *hop("a", 1), event("c", "succeeded")) == [503] * 4
    assert "the table is down" in warnings[-1]
    with pytest.raises(TaskStoreError):
        tasks.read("a", at(60))


class Contested(MemoryTaskStore):
    """A concurrent write comes first, `times` times."""

    times = 0

    def put_record(self, record: TaskRecord, replaces: StoredRecord | None, now: object) -> StoredRecord | Conflict:
        if self.times:
            self.times -= 1
            faster = TaskRecord(
                id=record.id, status="running", created_at=record.created_at, updated_at=format_time(at(self.times))
            )
            current = self._records.get(record.id)
            revision = current[0].revision if current else 0
            self._records[record.id] = (StoredRecord(faster, revision + 1), at(10_000))
        return super().put_record(record, replaces, at(50))


def test_a_record_that_changes_meanwhile_is_merged_again() -> None:
    store = Contested()
    store.times = 3
    tasks = tasks_over(store)
    assert report(tasks, event("t", "succeeded", 3, 40)) == [204]
    shown = tasks.read("t", at(60))
    assert shown is not None
    assert shown.status == "succeeded"


def test_endless_conflicts_end_with_an_error() -> None:
    store, warnings = Contested(), list[str]()
    store.times = 1000
    assert report(tasks_over(store, warnings), event("t", "succeeded", 3, 40)) == [503]
    assert "10 attempts met concurrent writes" in warnings[0]


def story_of(task_id: str) -> list[TaskEvent]:
    return [
        event(task_id, "registered", owner="AIDA"),
        *itertools.chain.from_iterable(hop(task_id, position) for position in range(3)),
        *hop(task_id, 1, attempt=2),
        event(task_id, "succeeded", 3, 40, result=Raw(b"[1]")),
        event(task_id, "succeeded", 3, 45, result=Raw(b"[1]"), result_uri="s3://results/t.json"),
    ]


@pytest.mark.rule("13.progress.never-back")
@settings(max_examples=60, deadline=None)
@given(st.permutations(story_of("t") * 2), st.lists(st.integers(1, 9), min_size=40, max_size=40))
def test_any_partition_into_requests_to_any_gateway_shows_the_same(order: list[TaskEvent], sizes: list[int]) -> None:
    store = MemoryTaskStore()
    gateways = itertools.cycle([tasks_over(store) for _ in range(3)])
    left = iter(order)
    while batch := list(itertools.islice(left, sizes.pop())):
        assert set(report(next(gateways), *batch)) == {204}
    shown = next(gateways).read("t", at(60))
    assert shown is not None
    expected = (("succeeded", 100), "AIDA", Raw(b"[1]"), "s3://results/t.json", route_at(3))
    assert (
        (shown.status, shown.progress_percent),
        shown.owner,
        shown.result,
        shown.result_uri,
        shown.route,
    ) == expected


def test_many_at_once() -> None:
    """Duplicated reports on 20 tasks, out of order, through four gateways at the same time."""
    store = MemoryTaskStore()
    gateways = [tasks_over(store) for _ in range(4)]
    stories = [each for number in range(20) for each in story_of(f"t{number}") * 4]
    random.Random(7).shuffle(stories)
    requests = [stories[start : start + 7] for start in range(0, len(stories), 7)]
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda pair: report(pair[0], *pair[1]), zip(itertools.cycle(gateways), requests))
        assert {status for answer in answers for status in answer} == {204}
    for number in range(20):
        shown = gateways[0].read(f"t{number}", at(60))
        assert shown is not None
        assert (shown.status, shown.progress_percent, shown.owner) == ("succeeded", 100, "AIDA")
        assert shown.result_uri == "s3://results/t.json"


@pytest.mark.rule("16.ends", "16.ends.lost")
def test_ends_are_told_after_the_write_and_again_with_each_repeated_report() -> None:
    """A process that dies between the two leaves the report on its queue."""
    store, told = MemoryTaskStore(), list[str]()
    tasks = Tasks(store, print, on_ends=lambda records: told.extend(record.id for record in records))
    created(tasks)
    report(tasks, *hop("t", 0))
    assert told == []
    for _ in range(2):
        report(tasks, event("t", "succeeded", 3, 40), event("other", "failed", 1, 20))
    assert sorted(told) == ["other", "other", "t", "t"]
    report(tasks, *hop("t", 2))
    tasks.update("t", lambda record, _: record, at(60))
    assert sorted(told) == ["other", "other", "t", "t", "t"]


@pytest.mark.rule("16.backfill.paused")
def test_a_pause_is_told_as_an_end_is() -> None:
    store, told = MemoryTaskStore(), list[TaskRecord]()
    tasks = Tasks(store, print, on_ends=told.extend)
    created(tasks)
    report(tasks, event("t", "paused", 1, 20, prompt="Go on?"))
    assert [(record.id, record.status) for record in told] == [("t", "paused")]


@pytest.mark.rule("16.ends")
def test_ends_that_are_not_written_are_not_told() -> None:
    """Their reports come again."""
    store, told = MemoryTaskStore(), list[TaskRecord]()
    tasks = Tasks(store, print, on_ends=told.extend)
    store.broken = True
    assert report(tasks, event("t", "succeeded", 3, 40)) == [503]
    assert told == []
