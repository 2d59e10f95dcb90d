"""protocol §13: progress, current actor and attempt from the hop records, and the view of a task."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.envelope import Route
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
from asya.protocol.hops import HopRecord, fold, hop_records
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.tasks.view import task_view
from tests.doubles.tasks import ACTORS, at, event, hop, route_at, run_note

Key = tuple[str, int, int, int, str]


def table_of(batches: list[list[TaskEvent]]) -> dict[Key, HopRecord]:
    """The table after these batches: records by key; each write replaces the record before."""
    table: dict[Key, HopRecord] = {}
    for batch in batches:
        for part in hop_records(batch):
            table[part.id, part.generation, part.position, part.attempt, part.stage] = part
    return table


def test_reports_of_a_hop_that_arrive_together_are_one_record() -> None:
    [part] = hop_records(hop("t", 1))
    assert (part.stage, part.percent, part.actor) == ("done", 66, "clean-flights")
    assert (part.message_size_kb, part.duration_ms) == (1.5, 4000.0)
    assert part.received_at < part.processing_at < part.completed_at  # type: ignore[operator]
    assert (part.prev, part.next) == (("inspect-dataset",), ("publish-report",))


def test_without_its_end_a_hop_is_a_start() -> None:
    [part] = hop_records(hop("t", 0)[:2])
    assert (part.stage, part.percent) == ("start", 15)
    [waiting] = hop_records(hop("t", 0)[:1])
    assert (waiting.stage, waiting.percent) == ("received", 10)


def test_every_task_generation_and_attempt_has_its_own_record() -> None:
    batch = [*hop("a", 0), *hop("b", 0), *hop("a", 0, attempt=2), *hop("a", 0, generation=1)]
    assert len(hop_records(batch)) == 4


@pytest.mark.rule("10.progress.never-back")
@pytest.mark.parametrize("order", list(itertools.permutations((10.0, 20.0, 30.0))))
def test_of_the_notes_on_a_job_run_that_arrive_together_the_latest_counts(order: tuple[float, ...]) -> None:
    """All reports of a heartbeat have the time of the run's start; only the notes differ."""
    [part] = hop_records([event("t", "processing", 0, 1, run=run_note(seconds)) for seconds in order])
    assert part.run == run_note(30)


@pytest.mark.rule("10.progress.never-back")
def test_the_note_of_the_end_counts_whatever_the_clock_of_the_job_said() -> None:
    [part] = hop_records(
        [event("t", "completed", 0, 9, run=run_note(19)), event("t", "processing", 0, 1, run=run_note(20))]
    )
    assert (part.stage, part.run) == ("done", run_note(19))


def test_terminal_reports_are_no_hops() -> None:
    assert hop_records([event("t", "succeeded", 3), event("t", "registered")]) == []


def test_three_actors_go_through_the_percentages_of_the_protocol() -> None:
    reports = [each for position in range(3) for each in hop("t", position)]
    view = [fold(table_of([[each] for each in reports[:count]]).values()).percent for count in range(1, 10)]
    assert view == [10, 15, 33, 43, 48, 66, 76, 81, 99]


def test_a_growing_route_does_not_lower_the_progress() -> None:
    longer = Route(("a",), "b", ("c", "d", "e", "f", "g", "h"))
    reports = [[event("t", "completed", 0, route=Route((), "a", ("b",)))], [event("t", "received", 1, route=longer)]]
    assert fold(table_of(reports).values()).percent == 50


def test_the_latest_hop_tells_actor_route_and_attempt() -> None:
    total = fold(table_of([hop("t", 1, attempt=2), hop("t", 0), hop("t", 1)]).values())
    assert total.latest is not None
    assert (total.latest.actor, total.latest.attempt, total.route(None)) == ("clean-flights", 2, route_at(1))


def test_actor_names_beyond_the_limit_come_from_earlier_hops() -> None:
    names = tuple(f"a-rather-long-actor-name-{number}" for number in range(40))
    reports = [
        [event("t", "completed", position, actor=names[position], route=route_at(position, names))]
        for position in range(30)
    ]
    table = table_of(reports)
    assert table["t", 0, 29, 1, "done"].prev is None
    assert fold(table.values()).route(None) == route_at(29, names)
    # A child begins in the middle of the route; its task record has the actors before.
    later = [part for part in table.values() if part.position >= 10]
    assert fold(later).route(route_at(10, names)) == route_at(29, names)


def test_an_override_shows_the_actual_actor_and_leaves_the_route_its_logical_names() -> None:
    total = fold(table_of([[event("t", "completed", 1, actor="clean-flights-canary")]]).values())
    assert total.latest is not None
    assert (total.latest.actor, total.route(None)) == ("clean-flights-canary", route_at(1))


REPORTS = [
    *itertools.chain.from_iterable(hop("t", position) for position in range(3)),
    *hop("t", 1, attempt=2),
    event("t", "succeeded", 3, 40),
]


@given(st.permutations([*REPORTS, *REPORTS]))
@pytest.mark.slow
def test_single_reports_in_any_order_show_the_same_and_progress_never_decreases(order: list[TaskEvent]) -> None:
    record: TaskRecord | None = None
    percent = 0
    for count, each in enumerate(order, 1):
        record = merge(record, each)
        view = task_view(record, fold(table_of([[one] for one in order[:count]]).values()), at(100))
        assert percent <= view.progress_percent <= 100
        assert (view.progress_percent == 100) == (view.status == "succeeded")
        percent = view.progress_percent
    assert (view.status, view.actor, view.updated_at) == ("succeeded", "publish-report", REPORTS[-1].at)


BATCHES = [hop("t", 0)[:2], hop("t", 0)[2:], hop("t", 1), [*hop("t", 1, attempt=2)[:2]], hop("t", 2)]


@given(st.permutations([*BATCHES, *BATCHES]))
def test_batches_in_any_order_and_twice_add_up_to_the_same(order: list[list[TaskEvent]]) -> None:
    assert table_of(order) == table_of(BATCHES)
    total = fold(table_of(order).values())
    assert (total.percent, total.route(None)) == (99, route_at(2))


def view_of(record: TaskRecord, *batches: list[TaskEvent], now: float = 1000.0) -> dict[str, object]:
    view = task_view(record, fold(table_of(list(batches)).values(), record.generation), at(now))
    return {name: getattr(view, name) for name in view.__struct_fields__}


def created(**more: object) -> TaskRecord:
    moment = event("t", "received").at
    fields = {"status": "pending", "route": route_at(0), "actor": ACTORS[0], "attempt": 1} | more
    return TaskRecord(id="t", created_at=moment, updated_at=moment, **fields)  # type: ignore[arg-type]


def test_a_pending_record_with_hops_is_running() -> None:
    assert view_of(created())["status"] == "pending"
    view = view_of(created(), hop("t", 1))
    assert (view["status"], view["actor"], view["progress_percent"]) == ("running", "clean-flights", 66)


def test_a_failure_keeps_its_last_progress() -> None:
    view = view_of(merge(created(), event("t", "failed", 1, 20, reason="RuntimeError")), hop("t", 0), hop("t", 1)[:1])
    assert (view["status"], view["progress_percent"]) == ("failed", 43)


@pytest.mark.parametrize("status", ["pending", "running"])
def test_an_overdue_task_reads_failed_at_once(status: str) -> None:
    record = created(status=status, deadline_at="2026-11-20T09:05:00.000000Z")
    assert view_of(record, hop("t", 0), now=299)["status"] == "running"
    view = view_of(record, hop("t", 0), now=300)
    assert (view["status"], view["reason"], view["progress_percent"]) == ("failed", "Timeout", 33)
    assert view["error"].message == "task timed out"  # type: ignore[attr-defined]
    assert view["updated_at"] == "2026-11-20T09:05:00.000000Z"


def test_paused_and_ended_tasks_are_never_overdue() -> None:
    for status in ("paused", "succeeded", "canceled"):
        record = created(status=status, deadline_at="2026-11-20T09:05:00.000000Z")
        assert view_of(record, now=10_000)["status"] == status


@pytest.mark.rule("12.older-reports")
def test_hops_of_another_generation_do_not_count() -> None:
    record = created(generation=1, status="running")
    assert view_of(record, hop("t", 2), hop("t", 0, generation=1))["progress_percent"] == 33


PROBLEM = TaskProblem("AccessDenied", "the queue of b refuses messages of a")


@pytest.mark.rule("13.problem")
@given(st.permutations(range(4)))
def test_a_problem_lasts_until_a_later_report(order: list[int]) -> None:
    refused = event("t", "completed", 0, 6, problem=PROBLEM)
    reports = [*hop("t", 0), refused]
    total = fold(table_of([[reports[number]] for number in order]).values())
    assert total.problem == PROBLEM
    assert total.percent == 33
    again = table_of([[each] for each in (*reports, event("t", "received", 0, 20))])
    assert fold(again.values()).problem is None
    assert fold(table_of([reports, hop("t", 1)]).values()).problem is None


@pytest.mark.rule("13.problem.before-the-hop")
def test_a_problem_alone_is_no_progress() -> None:
    """An envelope may be kept before its hop begins, and its route may be unknown."""
    total = fold(hop_records([event("t", "processing", 1, 6, problem=PROBLEM)]))
    assert (total.problem, total.percent, total.latest) == (PROBLEM, 0, None)


@pytest.mark.rule("13.problem")
def test_a_problem_is_shown_while_the_task_runs() -> None:
    reports = [*hop("t", 0), event("t", "completed", 0, 6, problem=PROBLEM)]
    record: TaskRecord | None = None
    for report in reports:
        record = merge(record, report)
    assert record is not None
    hops = fold(hop_records(reports))
    view = task_view(record, hops, at(7))
    assert (view.status, view.problem, view.progress_percent) == ("running", PROBLEM, 33)
    ended = task_view(merge(record, event("t", "failed", 0, 8)), hops, at(9))
    assert (ended.status, ended.problem) == ("failed", None)
