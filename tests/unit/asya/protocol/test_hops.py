"""protocol §13: progress, current actor and attempt, folded from the hops; and what is shown of a task."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.events import TaskEvent
from asya.protocol.hops import HopRecord, fold, hop_records
from asya.protocol.route import Route
from asya.protocol.task import TaskRecord, merge
from asya.tasks.view import task_view
from tests.doubles.tasks import ACTORS, at, event, hop, route_at

Key = tuple[str, int, int, int, str]


def kept(batches: list[list[TaskEvent]]) -> dict[Key, HopRecord]:
    """What is in the table after these batches: parts by key, each written blindly over what was there."""
    table: dict[Key, HopRecord] = {}
    for batch in batches:
        for part in hop_records(batch):
            table[part.id, part.generation, part.position, part.attempt, part.stage] = part
    return table


def test_the_reports_of_a_hop_that_come_together_are_one_part() -> None:
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


def test_every_task_generation_and_attempt_is_a_part_of_its_own() -> None:
    batch = [*hop("a", 0), *hop("b", 0), *hop("a", 0, attempt=2), *hop("a", 0, generation=1)]
    assert len(hop_records(batch)) == 4


def test_terminal_reports_are_no_hops() -> None:
    assert hop_records([event("t", "succeeded", 3), event("t", "registered")]) == []


def test_three_actors_go_through_the_percentages_of_the_protocol() -> None:
    told = [each for position in range(3) for each in hop("t", position)]
    shown = [fold(kept([[each] for each in told[:count]]).values()).percent for count in range(1, 10)]
    assert shown == [10, 15, 33, 43, 48, 66, 76, 81, 99]


def test_a_route_that_grows_takes_nothing_back() -> None:
    longer = Route(("a",), "b", ("c", "d", "e", "f", "g", "h"))
    told = [[event("t", "completed", 0, route=Route((), "a", ("b",)))], [event("t", "received", 1, route=longer)]]
    assert fold(kept(told).values()).percent == 50


def test_the_latest_hop_tells_actor_route_and_attempt() -> None:
    total = fold(kept([hop("t", 1, attempt=2), hop("t", 0), hop("t", 1)]).values())
    assert total.latest is not None
    assert (total.latest.actor, total.latest.attempt, total.route(None)) == ("clean-flights", 2, route_at(1))


def test_names_already_done_are_found_again_where_they_were_too_long_to_repeat() -> None:
    names = tuple(f"a-rather-long-actor-name-{number}" for number in range(40))
    told = [
        [event("t", "completed", position, actor=names[position], route=route_at(position, names))]
        for position in range(30)
    ]
    table = kept(told)
    assert table["t", 0, 29, 1, "done"].prev is None
    assert fold(table.values()).route(None) == route_at(29, names)
    # A child begins in the middle: its record knows what was before.
    later = [part for part in table.values() if part.position >= 10]
    assert fold(later).route(route_at(10, names)) == route_at(29, names)


def test_an_override_shows_the_actual_actor_and_leaves_the_route_its_logical_names() -> None:
    total = fold(kept([[event("t", "completed", 1, actor="clean-flights-canary")]]).values())
    assert total.latest is not None
    assert (total.latest.actor, total.route(None)) == ("clean-flights-canary", route_at(1))


TOLD = [
    *itertools.chain.from_iterable(hop("t", position) for position in range(3)),
    *hop("t", 1, attempt=2),
    event("t", "succeeded", 3, 40),
]


@given(st.permutations([*TOLD, *TOLD]))
def test_single_reports_in_any_order_show_the_same_and_progress_never_decreases(order: list[TaskEvent]) -> None:
    record: TaskRecord | None = None
    percent = 0
    for count, each in enumerate(order, 1):
        record = merge(record, each)
        shown = task_view(record, fold(kept([[one] for one in order[:count]]).values()), at(100))
        assert percent <= shown.progress_percent <= 100
        assert (shown.progress_percent == 100) == (shown.status == "succeeded")
        percent = shown.progress_percent
    assert (shown.status, shown.actor, shown.updated_at) == ("succeeded", "publish-report", TOLD[-1].at)


BATCHES = [hop("t", 0)[:2], hop("t", 0)[2:], hop("t", 1), [*hop("t", 1, attempt=2)[:2]], hop("t", 2)]


@given(st.permutations([*BATCHES, *BATCHES]))
def test_batches_in_any_order_and_twice_add_up_to_the_same(order: list[list[TaskEvent]]) -> None:
    assert kept(order) == kept(BATCHES)
    total = fold(kept(order).values())
    assert (total.percent, total.route(None)) == (99, route_at(2))


def shown_of(record: TaskRecord, *batches: list[TaskEvent], now: float = 1000.0) -> dict[str, object]:
    shown = task_view(record, fold(kept(list(batches)).values(), record.generation), at(now))
    return {name: getattr(shown, name) for name in shown.__struct_fields__}


def created(**more: object) -> TaskRecord:
    moment = event("t", "received").at
    fields = {"status": "pending", "route": route_at(0), "actor": ACTORS[0], "attempt": 1} | more
    return TaskRecord(id="t", created_at=moment, updated_at=moment, **fields)  # type: ignore[arg-type]


def test_a_pending_record_with_hops_is_running() -> None:
    assert shown_of(created())["status"] == "pending"
    shown = shown_of(created(), hop("t", 1))
    assert (shown["status"], shown["actor"], shown["progress_percent"]) == ("running", "clean-flights", 66)


def test_a_failure_keeps_its_last_progress() -> None:
    shown = shown_of(merge(created(), event("t", "failed", 1, 20, reason="RuntimeError")), hop("t", 0), hop("t", 1)[:1])
    assert (shown["status"], shown["progress_percent"]) == ("failed", 43)


@pytest.mark.parametrize("status", ["pending", "running"])
def test_an_overdue_task_reads_failed_at_once(status: str) -> None:
    record = created(status=status, deadline_at="2026-11-20T09:05:00.000000Z")
    assert shown_of(record, hop("t", 0), now=299)["status"] == "running"
    shown = shown_of(record, hop("t", 0), now=300)
    assert (shown["status"], shown["reason"], shown["progress_percent"]) == ("failed", "Timeout", 33)
    assert shown["error"].message == "task timed out"  # type: ignore[attr-defined]
    assert shown["updated_at"] == "2026-11-20T09:05:00.000000Z"


def test_paused_and_ended_tasks_are_never_overdue() -> None:
    for status in ("paused", "succeeded", "canceled"):
        record = created(status=status, deadline_at="2026-11-20T09:05:00.000000Z")
        assert shown_of(record, now=10_000)["status"] == status


@pytest.mark.rule("12.older-reports")
def test_hops_of_another_generation_do_not_count() -> None:
    record = created(generation=1, status="running")
    assert shown_of(record, hop("t", 2), hop("t", 0, generation=1))["progress_percent"] == 33
