"""The deadline sweep fails overdue tasks within two minutes (`protocol §13`)."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.capabilities.triggers.lambdas.sweeps import BackfillSweep, SlotSweep
from asya.function.aws import clients
from asya.function.lambdas.environment import RealEnvironment
from asya.gateway.lambdas import wiring
from asya.gateway.lambdas.task_sweeps import DeadlineSweep
from asya.gateway.lambdas.wiring import build_deadline_sweep
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.index import TaskIndex
from asya.tasks.aws.lasting import LastingTasks
from asya.tasks.aws.sweep_marks import EndsMarks, MarkKind
from asya.tasks.aws.task_store import TaskStoreError
from tests.doubles.emf import metric_values, metrics
from tests.doubles.gateway_functions import MESH, Gateway, report, settings_with
from tests.doubles.tasks import at
from tests.unit.asya.gateway.routes.test_cancel import shown, start

ENDS_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/asya-flights-x-ends"


class Clock(RealEnvironment):
    """A clock that stands still unless the process waits."""

    def __init__(self, moment: datetime) -> None:
        super().__init__()
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def sweep(gateway: Gateway, seconds: float) -> None:
    build_deadline_sweep(Services(settings_with(gateway.environ, gateway.mesh), Clock(at(seconds)))).sweep()


def written(task_id: str) -> tuple[str, str | None]:
    key: Any = {"pk": {"S": task_id}, "sk": {"S": "record"}}
    item = clients.dynamodb().get_item(TableName="asya-flights-tasks", Key=key)["Item"]
    return item["status"]["S"], item["reason"]["S"] if "reason" in item else None


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


@pytest.mark.rule("13.backstop.written")
def test_the_records_of_overdue_tasks_fail(gateway: Gateway) -> None:
    soon, later, never = start(gateway, timeout=70), start(gateway, timeout=600), start(gateway)
    report(gateway, soon, "received", 1, data={"actor": "inspect-dataset"})
    sweep(gateway, 60)
    assert (written(soon), shown(gateway, soon, 60)["status"]) == (("pending", None), "running")
    sweep(gateway, 120)
    assert written(soon) == ("failed", "Timeout")
    before = shown(gateway, soon, 125)
    assert (before["status"], before["error"]["message"]) == ("failed", "task timed out")
    sweep(gateway, 180)
    assert [written(later)[0], written(never)[0]] == ["pending", "pending"]
    assert shown(gateway, soon, 200) == before


@pytest.mark.rule("13.backstop.written")
def test_a_late_deadline_is_known_to_the_index_before_the_sweep_goes_by_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open tasks are entered under their deadline some minutes after they began. Here no sweep has time for that for two hours."""
    sweep(gateway, 0)
    task_id = start(gateway, timeout=3_000)
    with monkeypatch.context() as patch:
        patch.setattr(LastingTasks, "enter", lambda _, since, *__, **___: since)
        for minute in range(1, 120, 9):
            sweep(gateway, 60 * minute)
    assert (written(task_id), shown(gateway, task_id, 7_200)["status"]) == (("pending", None), "failed")
    sweep(gateway, 7_200)
    assert written(task_id) == ("failed", "Timeout")


@pytest.mark.rule("13.backstop.written")
def test_the_report_of_x_sink_has_a_grace_period(gateway: Gateway) -> None:
    task_id = start(gateway, timeout=70)
    sweep(gateway, 85)
    assert (written(task_id), shown(gateway, task_id, 85)["status"]) == (("pending", None), "failed")
    data = {"error": {"type": "Timeout", "message": "it took too long"}, "reason": "Timeout", "actor": "publish-report"}
    report(gateway, task_id, "failed", 86, position=1, data=data)
    sweep(gateway, 145)
    found = shown(gateway, task_id, 150)
    assert (found["error"]["message"], found["reason"], found["actor"]) == (
        "it took too long",
        "Timeout",
        "publish-report",
    )


@pytest.mark.rule("13.provisional")
@pytest.mark.parametrize("is_swept", [False, True])
def test_the_end_that_the_deadline_sets_gives_way_to_the_end_that_x_sink_claimed(
    gateway: Gateway, is_swept: bool
) -> None:
    task_id = start(gateway, timeout=70)
    if is_swept:
        sweep(gateway, 120)
    before = shown(gateway, task_id, 125)
    assert (before["status"], before["reason"], before["provisional"]) == ("failed", "Timeout", True)
    report(gateway, task_id, "received", 126, data={"actor": "inspect-dataset"})
    assert shown(gateway, task_id, 127)["status"] == "failed"
    report(gateway, task_id, "succeeded", 130, position=1, data={"result": 42})
    after = shown(gateway, task_id, 140)
    assert (after["status"], after["result"], "reason" in after, "provisional" in after) == (
        "succeeded",
        42,
        False,
        False,
    )
    sweep(gateway, 180)
    assert shown(gateway, task_id, 200) == after


@pytest.mark.rule("13.backstop.written")
def test_overdue_tasks_are_found_after_an_outage(gateway: Gateway) -> None:
    task_id = start(gateway, timeout=115)
    sweep(gateway, 121)
    assert written(task_id) == ("pending", None)
    sweep(gateway, 3600)
    assert written(task_id) == ("failed", "Timeout")


def mark(kind: MarkKind, seconds: float) -> None:
    EndsMarks(clients.dynamodb(), "asya-flights-tasks").write(kind, at(seconds))


@pytest.mark.rule("13.backstop.ends")
def test_nothing_is_written_while_nobody_consumes_the_ends(gateway: Gateway) -> None:
    """The consumer is broken, throttled or not there: an end of this task may lie in the queue."""
    task_id = start(gateway, timeout=70)
    clients.sqs().send_message(QueueUrl=ENDS_URL, MessageBody="[]")
    mark("fresh", 30)
    for minute in range(2, 60, 10):
        sweep(gateway, 60 * minute)
        assert written(task_id) == ("pending", None)
        assert shown(gateway, task_id, 60 * minute)["status"] == "failed"  # readers need no sweep
    clients.sqs().purge_queue(QueueUrl=ENDS_URL)
    sweep(gateway, 3600)
    assert written(task_id) == ("failed", "Timeout")


@pytest.mark.rule("13.backstop.ends")
def test_nothing_is_written_while_a_backlog_is_consumed(gateway: Gateway) -> None:
    task_id = start(gateway, timeout=70)
    clients.sqs().send_message(QueueUrl=ENDS_URL, MessageBody="[]")
    mark("late", 100)
    mark("fresh", 119)
    sweep(gateway, 120)
    assert written(task_id) == ("pending", None)
    mark("fresh", 299)
    sweep(gateway, 300)
    assert written(task_id) == ("failed", "Timeout")


@pytest.mark.rule("13.backstop.written")
def test_a_task_whose_first_report_is_an_hour_late_is_found(gateway: Gateway) -> None:
    sweep(gateway, 3600)
    early = {"deadline_at": "2026-11-20T09:02:00Z", "created_at": "2026-11-20T09:00:00Z"}
    data = {"data": early | {"route": {"prev": [], "curr": "inspect-dataset", "next": []}}}
    body = [{"id": "late", "status": "received", "at": "2026-11-20T09:00:01Z", **data}]
    assert gateway.write_reports(body, at(3660)) == [204]
    sweep(gateway, 3720)
    assert written("late") == ("failed", "Timeout")


@pytest.mark.rule("13.backstop.written")
def test_ended_and_paused_tasks_stay_unchanged(gateway: Gateway) -> None:
    ended, paused, canceled = (start(gateway, timeout=70) for _ in range(3))
    for task_id, status in ((ended, "succeeded"), (paused, "paused"), (canceled, "canceled")):
        report(gateway, task_id, "received", 1)
        report(gateway, task_id, status, 2, position=1)
    sweep(gateway, 120)
    assert [written(task_id)[0] for task_id in (ended, paused, canceled)] == ["succeeded", "paused", "canceled"]


@pytest.mark.rule("13.backstop.written")
@pytest.mark.slow
def test_no_deadline_is_skipped_without_sweeps(gateway: Gateway) -> None:
    sweep(gateway, 0)
    tasks = [start(gateway, timeout=600 * number) for number in range(1, 20)]
    sweep(gateway, 4 * 3600)
    sweep(gateway, 4 * 3600 + 60)
    assert {written(task_id)[0] for task_id in tasks} == {"failed"}


@pytest.mark.rule("13.backstop.written")
def test_a_minute_with_more_deadlines_than_a_sweep_has_time_for_is_read_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sweep has time for one of them. Otherwise the function would die, and so would the sweeps after this one."""
    sweep(gateway, 0)
    tasks = [start(gateway, timeout=70) for _ in range(3)]
    before = 0

    def failed() -> int:
        return sum(written(task_id)[0] == "failed" for task_id in tasks)

    monkeypatch.setattr(DeadlineSweep, "_is_over", lambda *_: failed() > before)
    monkeypatch.setattr("asya.gateway.lambdas.task_sweeps.BATCH_SIZE", 1)
    for number in range(3):
        before = failed()
        sweep(gateway, 600 + 60 * number)
        assert failed() == before + 1


@pytest.mark.rule("13.backstop.written")
def test_ended_tasks_of_one_minute_do_not_hold_up_the_sweep_for_ever(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody gives more tasks deadlines of one minute than a sweep can read. None of them is overdue."""
    sweep(gateway, 0)
    for _ in range(6):
        report(gateway, start(gateway, timeout=70), "succeeded", 1)
    overdue, later = start(gateway, timeout=70), start(gateway, timeout=130)
    reads: list[int] = []
    read = DynamoTaskStore.records

    def counted(store: DynamoTaskStore, ids: Any, *more: Any, **options: Any) -> Any:
        reads.append(len(ids))
        return read(store, ids, *more, **options)

    monkeypatch.setattr(LastingTasks, "enter", lambda _, since, now, **__: now)
    monkeypatch.setattr(DynamoTaskStore, "records", counted)
    monkeypatch.setattr(DeadlineSweep, "_is_over", lambda *_: bool(reads))
    monkeypatch.setattr("asya.gateway.lambdas.task_sweeps.BATCH_SIZE", 1)
    for number in range(12):
        reads.clear()
        sweep(gateway, 600 + 60 * number)
        assert len(reads) <= 2  # one batch, and the update of an overdue task
    assert [written(task_id)[0] for task_id in (overdue, later)] == ["failed", "failed"]


def test_a_task_that_is_created_after_its_deadline_fails_too(gateway: Gateway) -> None:
    sweep(gateway, 3600)
    report(gateway, "late", "received", 3610, data={"deadline_at": "2026-11-20T09:30:00Z"})
    sweep(gateway, 3660)
    assert written("late") == ("failed", "Timeout")


def test_the_entry_point_is_a_schedules_tick(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Services(settings_with(gateway.environ, gateway.mesh), Clock(at(0)))
    monkeypatch.setattr("asya.sidecar.lambdas.entry_point.services", lambda: found)
    wiring.deadline_sweep({}, None)


@pytest.mark.rule("16.due", "16.backfill.at-once")
def test_16_slots_and_backfills_do_not_wait_for_deadlines(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of overdue tasks take more time than the function has, and slots would be missed meanwhile."""
    found = Services(settings_with(gateway.environ, gateway.mesh), Clock(at(0)))
    monkeypatch.setattr("asya.sidecar.lambdas.entry_point.services", lambda: found)
    sweeps: list[str] = []

    class TimedOutError(BaseException):
        """Lambda ends the process."""

    def time_out(_sweep: DeadlineSweep) -> None:
        raise TimedOutError

    monkeypatch.setattr(SlotSweep, "sweep", lambda _sweep: sweeps.append("slots"))
    monkeypatch.setattr(BackfillSweep, "sweep", lambda _sweep: sweeps.append("backfills"))
    monkeypatch.setattr(DeadlineSweep, "sweep", time_out)
    with pytest.raises(TimedOutError):
        wiring.deadline_sweep({}, None)
    assert sweeps == ["slots", "backfills"]


@pytest.mark.rule("15.SlaExpired", "15.Sweeps")
def test_15_a_deadline_that_passes_while_the_task_waits_is_counted(
    gateway: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    start(gateway, timeout=70)
    start(gateway, timeout=600)
    metrics(capsys)
    sweep(gateway, 60)
    found = metrics(capsys)
    assert (metric_values(found, "SlaExpired"), metric_values(found, "Sweeps")) == ([], [1])
    sweep(gateway, 120)
    found = metrics(capsys)
    assert (metric_values(found, "SlaExpired"), metric_values(found, "Sweeps")) == ([1], [1])


@pytest.mark.rule("15.Sweeps")
def test_15_a_sweep_that_cannot_read_the_table_is_not_finished(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable(*_: Any) -> Any:
        raise TaskStoreError("the table is unavailable")

    monkeypatch.setattr(TaskIndex, "due", unavailable)
    with pytest.raises(TaskStoreError):
        sweep(gateway, 60)
    assert metric_values(metrics(capsys), "Sweeps") == []
