"""protocol §13.lost: how long nothing may be heard of a task."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from asya.heavy.aws.pending import CLAIM_LIFETIME
from asya.protocol.errors import ErrorInfo
from asya.protocol.hops import HopFold, fold, hop_records
from asya.protocol.mesh_table import Actor, FanIn, MeshTable, Retention, SparkJob
from asya.protocol.task import TaskRecord, TaskRetry
from asya.protocol.task_merge import merge
from asya.protocol.times import format_time, parse_time
from asya.tasks import sweeps
from asya.tasks.view import task_view
from tests.doubles.tasks import ACTORS, at, event

DAY = 86_400.0
LIGHT = Actor(kind="handler", handler="h.f")


def mesh(retention: Retention | None = None, **actors: Actor) -> MeshTable:
    named = {name.replace("_", "-"): actor for name, actor in actors.items()}
    return MeshTable(
        namespace="flights", actors=dict.fromkeys(ACTORS, LIGHT) | named, retention=retention or Retention()
    )


def task(*events: Any) -> tuple[TaskRecord, HopFold]:
    record: TaskRecord | None = None
    for each in events:
        record = merge(record, each)
    assert record is not None
    return record, fold(hop_records(events))


def lost_from(record: TaskRecord, hops: HopFold, table: MeshTable) -> float:
    """After how many days the task is lost: neither a second before, but then."""
    since = parse_time(sweeps.silent_since(record, hops))
    hold = sweeps.longest_silence(record, hops, table)
    second = timedelta(seconds=1)
    assert not sweeps.is_lost(record, hops, table, since + hold - second)
    assert sweeps.is_lost(record, hops, table, since + hold + second)
    return (since + hold - at(0)).total_seconds() / DAY


HEAVY = Actor(kind="spark", spark=SparkJob(job="j", max_run=DAY))
FANS = Actor(kind="fan_in", fan_in=FanIn(ttl=7 * DAY))


@pytest.mark.rule("13.lost")
@pytest.mark.parametrize(
    ("last", "actors", "days"),
    [
        (event("t", "processing", 0), {}, 5),
        (event("t", "completed", 0), {}, 5),
        (event("t", "completed", 0), {"clean_flights": HEAVY}, 5 + 15 + 1),
        (event("t", "received", 1), {"clean_flights": HEAVY}, 21),
        (event("t", "received", 1), {"clean_flights": FANS}, 12),
        (event("t", "received", 0), {"publish_report": HEAVY}, 5),
        (event("t", "received", 0, actor="elsewhere"), {"publish_report": HEAVY}, 21),
    ],
)
def test_a_task_is_lost_later_than_its_place_can_hold_it(last: Any, actors: dict[str, Actor], days: float) -> None:
    assert lost_from(*task(last), mesh(**actors)) == pytest.approx(days)


@pytest.mark.rule("13.lost")
def test_a_heavy_actor_holds_an_envelope_as_long_as_its_claim_lives() -> None:
    assert sweeps.PENDING == CLAIM_LIFETIME


@pytest.mark.rule("13.lost")
def test_waits_and_retries_count_from_their_end() -> None:
    until = format_time(at(20 * DAY))
    waits = task(event("t", "received", 0), event("t", "waiting", 0, 1, waiting_until=until))
    assert lost_from(*waits, mesh()) == pytest.approx(25)
    record, hops = task(event("t", "processing", 0))
    retry = TaskRetry(
        actor="inspect-dataset",
        position=0,
        attempt=1,
        max_attempts=3,
        at=format_time(at(0)),
        next_at=until,
        error=ErrorInfo(type="E", message=""),
    )
    assert lost_from(replace(record, retry=retry), hops, mesh()) == pytest.approx(25)
    assert lost_from(replace(record, retry=replace(retry, generation=3)), hops, mesh()) == pytest.approx(5)


@pytest.mark.rule("13.lost")
def test_a_task_is_lost_before_its_record_expires() -> None:
    table = mesh(Retention(tasks=3 * DAY), inspect_dataset=HEAVY)
    assert lost_from(*task(event("t", "received", 0)), table) == pytest.approx(2.7)
    assert sweeps.shortest_silence(table) == timedelta(days=2.7)


@pytest.mark.rule("13.lost")
@pytest.mark.parametrize("end", ["succeeded", "failed", "canceled", "paused"])
def test_what_has_ended_or_is_paused_is_not_lost(end: Any) -> None:
    record, hops = task(event("t", "received", 0), event("t", end, 1, 1))
    assert not sweeps.is_lost(record, hops, mesh(), at(999 * DAY))


@pytest.mark.rule("13.lost", "13.lost.late")
@pytest.mark.parametrize("status", ["completed", "received"])
def test_it_is_told_once_and_a_late_report_clears_it(status: Any) -> None:
    record, hops = task(event("t", "received", 0), event("t", "processing", 0, 1))
    report = sweeps.lost_report(record, hops, mesh())
    told = fold(hop_records([event("t", "received", 0), event("t", "processing", 0, 1), report]))
    record = merge(record, report)
    assert not sweeps.is_lost(record, told, mesh(), at(99 * DAY))
    view = task_view(record, told, at(6 * DAY))
    assert view.problem is not None
    assert (view.status, view.problem.type, view.progress_percent) == ("running", "EnvelopeLost", hops.percent)
    assert view.problem.message.startswith(
        "nothing was heard of this envelope at inspect-dataset since 2026-11-20T09:00:01"
    )
    # The report is as old as the message in which it waited.
    late = event("t", status, 1, 2)
    back = fold(hop_records([event("t", "processing", 0, 1), report, late]))
    assert task_view(merge(record, late), back, at(6 * DAY)).problem is None


@pytest.mark.rule("13.lost.late")
def test_an_end_that_turns_up_is_the_end() -> None:
    record, hops = task(event("t", "received", 0))
    lost = merge(record, sweeps.lost_report(record, hops, mesh()))
    assert merge(lost, event("t", "succeeded", 3, 2)) == merge(record, event("t", "succeeded", 3, 2))


@pytest.mark.rule("13.lost")
def test_a_task_whose_first_message_is_gone_is_lost_too() -> None:
    moment = format_time(at(0))
    record = TaskRecord(
        id="t", status="pending", created_at=moment, updated_at=moment, route=event("t", "received", 0).data.route
    )
    assert lost_from(record, fold([]), mesh()) == pytest.approx(5)
    report = sweeps.lost_report(record, fold([]), mesh())
    assert (report.position, report.attempt, report.data.actor) == (0, 1, "inspect-dataset")


@pytest.mark.rule("13.lost")
def test_the_advice_about_a_lost_task_quotes_an_id_that_somebody_outside_has_chosen() -> None:
    record, hops = task(event("t; rm -rf ~", "processing", 0))
    problem = sweeps.lost_report(record, hops, mesh()).data.problem
    assert problem is not None
    assert "`asya replay 't; rm -rf ~'`" in problem.message
