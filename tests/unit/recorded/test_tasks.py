"""Tasks that an earlier version wrote are read, found and gone on with by this one (`protocol §13`)."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.gateway.a2a.aws.push_configs import PushConfigStore
from asya.gateway.a2a.push import PushTarget
from asya.pause.resuming import check_paused
from asya.protocol import names
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import PartialEvent
from asya.protocol.hops import HopRecord
from asya.protocol.job_runs import Usage
from asya.protocol.pause import PauseField, PauseRelease
from asya.protocol.route import Route
from asya.protocol.run_progress import RunNote, StageNote
from asya.protocol.task import EarlierGeneration, TaskPause, TaskRecord
from asya.starts.aws.idempotency_keys import IdempotencyKeys
from asya.starts.idempotency import IdempotencyKey, InProgress, KeyClaim, KeyMismatch, StartedTask
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.index import NEWEST, ListKey, TaskIndex
from asya.tasks.aws.items import record_of
from asya.tasks.aws.list_scan import ListScan
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.overdue_tasks import OverdueTasks
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.paused_tasks import PausedTask, PausedTasks
from asya.tasks.aws.state_reader import StateReader
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import StoredRecord
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import read_list_query
from asya.tasks.partials import Partial, PartialBatch
from asya.tasks.task_state import StateQuery, TaskState
from tests.doubles.tasks import ACTORS, at, event, route_at
from tests.unit.recorded.recording import Recording, load

TABLE = "asya-shop-tasks"
RETENTION = 30 * 86400.0
NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
ANALYST = "arn:aws:sts::123456789012:assumed-role/Analyst"
STARTED = "2026-11-20T09:00:00.000000Z"
ENDED = "2026-11-20T09:00:25.500000Z"
FIELDS = (
    PauseField(name="approved", type="boolean", prompt="Go on?"),
    PauseField(name="channel", type="string", payload_key="/order/channel", required=False, default="mail"),
    PauseField(name="size", type="number", options=(1, 2.5, 3)),
)
ERROR = ErrorInfo(
    type="requests.exceptions.ConnectionError",
    message="the service is away … again",
    mro=("requests.exceptions.RequestException", "OSError", "Exception"),
    traceback="Traceback (most recent call last):\n  …",
)

DONE = TaskRecord(
    id="task-done",
    status="succeeded",
    created_at=STARTED,
    updated_at=ENDED,
    owner=ANALYST,
    deadline_at="2026-11-20T09:45:00.000000Z",
    actor="publish-report",
    route=Route(ACTORS, "", ()),
    attempt=1,
    result=Raw(b'{"rows": 336776, "mean": 1e2, "long": 12345678901234567890}'),
    result_uri="s3://bucket/results/succeeded/task-done.json",
    reason="Completed",
    context="context-1",
    is_watched=True,
)
FAILED = TaskRecord(
    id="task-failed",
    status="failed",
    created_at=STARTED,
    updated_at=ENDED,
    generation=2,
    owner="jwt https://login.example.com/ anna",
    actor="clean-flights",
    route=route_at(1),
    attempt=3,
    result_uri="s3://bucket/results/failed/task-failed.json",
    error=ERROR,
    reason="PolicyExhausted",
    earlier=(
        EarlierGeneration(generation=0, status="running"),
        EarlierGeneration(
            generation=1, status="failed", ended_at=ENDED, actor="clean-flights", reason="Timeout", error=ERROR
        ),
    ),
)
CHILD = TaskRecord(
    id="5a9c8a52-2c0e-4f5e-8a55-0d6b0e8ad001",
    status="running",
    created_at="2026-11-20T09:01:00.000000Z",
    updated_at="2026-11-20T09:01:30.250000Z",
    parent_id="task-failed",
    root_id="task-root",
    owner=ANALYST,
    deadline_at="2026-11-20T12:30:00.000000Z",
    actor="clean-flights",
    route=route_at(1),
    attempt=2,
)
PAUSED = TaskRecord(
    id="order/7 ü#%",
    status="paused",
    created_at=STARTED,
    updated_at=ENDED,
    owner=ANALYST,
    deadline_at="2026-11-20T09:45:00.000000Z",
    actor="x-pause",
    route=Route(("inspect-dataset",), "x-pause", ("publish-report",)),
    attempt=1,
    pause_epoch=1,
    pause=TaskPause(prompt="Send the order?", fields=FIELDS, since=ENDED),
)
RESUMED = TaskRecord(
    id="task-resumed",
    status="running",
    created_at=STARTED,
    updated_at=ENDED,
    actor="x-pause",
    route=Route((), "x-pause", ("publish-report",)),
    pause_epoch=3,
    resumed_epoch=3,
    handover=PauseRelease(to="x-resume", epoch=3, at=ENDED, input=Raw(b'{"approved":true,"size":1e0}')),
)
CANCELED = TaskRecord(
    id="task-canceled",
    status="canceled",
    created_at="2026-11-20T08:59:59.000000Z",
    updated_at=ENDED,
    reason="Canceled",
    pause_epoch=0,
    resumed_epoch=0,
    handover=PauseRelease(to="x-sink", epoch=0, at=ENDED),
)
RECORDS = {record.id: record for record in (DONE, FAILED, CHILD, PAUSED, RESUMED, CANCELED)}

RUN = RunNote(
    run_id="asya.shop.clean-flights.0000000012",
    job_run_id="00f1abc",
    state="SUCCESS",
    at="2026-11-20T09:00:20.000000Z",
    envelopes=20,
    done=20,
    stages=(StageNote(stage=4, name="collect at cleaning.py:20", tasks=8, done=7, rows_read=100, rows_written=3),),
    usage=Usage(vcpu_hours=0.25, memory_gb_hours=1.0, storage_gb_hours=0.5, billed=True),
)
HOPS = [
    HopRecord(
        id="task-done",
        generation=0,
        position=1,
        attempt=1,
        stage="done",
        actor="clean-flights",
        percent=66,
        at="2026-11-20T09:00:20.000000Z",
        curr="clean-flights-v2",
        next=("publish-report",),
        prev=("inspect-dataset",),
        completed_at="2026-11-20T09:00:20.000000Z",
        duration_ms=4000.125,
        run=RUN,
    ),
    HopRecord(
        id="task-done",
        generation=0,
        position=1,
        attempt=1,
        stage="received",
        actor="clean-flights",
        percent=40,
        at="2026-11-20T09:00:10.000000Z",
        next=("publish-report",),
        received_at="2026-11-20T09:00:10.000000Z",
        message_size_kb=1.5,
    ),
    HopRecord(
        id="task-done",
        generation=0,
        position=1,
        attempt=2,
        stage="start",
        actor="clean-flights",
        percent=50,
        at="2026-11-20T09:00:12.000000Z",
        processing_at="2026-11-20T09:00:12.000000Z",
    ),
]
FLIES = [
    PartialEvent(id="task-done", at=STARTED, data=Raw(b'{"rows":1}'), actor="clean-flights", position=1, sequence=0),
    PartialEvent(id="task-done", at=ENDED, data=Raw(b'{"rows":2}'), actor="clean-flights", position=1, sequence=1),
    PartialEvent(id="task-done", at=ENDED, data=Raw(b'{"rows":3}'), actor="clean-flights", position=1, receive=2),
]
PUSHES = {
    "config-1": PushTarget(url="https://client.example/hook", version="1.0", token="t0ken"),
    "config-2": PushTarget(url="https://client.example/2", version="0.3", scheme="Bearer", credentials="secret"),
}
SWEPT = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


@pytest.fixture
def state() -> Recording:
    return load("tasks")


@pytest.fixture
def store(state: Recording) -> DynamoTaskStore:
    return DynamoTaskStore(state.dynamodb, TABLE, RETENTION)  # type: ignore[arg-type]


@pytest.fixture
def tasks(store: DynamoTaskStore) -> Tasks:
    return Tasks(store, pytest.fail, threaded=False)


def index(state: Recording) -> TaskIndex:
    return TaskIndex(state.dynamodb, TABLE, threaded=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("task_id", RECORDS)
def test_a_record_is_read_with_every_field(store: DynamoTaskStore, task_id: str) -> None:
    found = store.records([task_id], NOW, consistent=True)[task_id]
    assert found == StoredRecord(RECORDS[task_id], 1)
    loaded = store.load(task_id, NOW)
    assert loaded is not None
    assert loaded[0] == RECORDS[task_id]


def test_a_result_keeps_its_bytes(store: DynamoTaskStore) -> None:
    found = store.records(["task-done"], NOW)["task-done"].record
    assert isinstance(found.result, Raw)
    assert bytes(found.result) == b'{"rows": 336776, "mean": 1e2, "long": 12345678901234567890}'


def test_hops_are_read_with_every_field(store: DynamoTaskStore) -> None:
    assert list(store.hops("task-done", NOW)) == HOPS


def test_a_task_that_was_reported_is_seen_with_its_hops(tasks: Tasks) -> None:
    found = tasks.read_with_hops("task-reported", NOW)
    assert found is not None
    task, hops = found
    assert (task.status, task.progress_percent, task.actor) == ("running", 48, "clean-flights")
    assert task.route == route_at(1)
    assert (task.owner, task.created_at, task.deadline_at) == (ANALYST, STARTED, "2026-11-20T19:00:00.000000Z")
    # Reports that come together make one part of a hop.
    assert [(hop.position, hop.stage, hop.duration_ms) for hop in hops] == [(1, "start", None), (0, "done", 4000.0)]


def test_a_report_goes_on_with_a_task(tasks: Tasks, store: DynamoTaskStore) -> None:
    told = event("task-reported", "succeeded", 2, 100, result=Raw(b"[1]"), reason="Completed")
    (answer,) = tasks.report([told], NOW, may_create=False)
    assert answer.status == HTTPStatus.NO_CONTENT
    stored = store.records(["task-reported"], NOW)["task-reported"]
    assert (stored.record.status, stored.record.result) == ("succeeded", Raw(b"[1]"))
    assert stored.record.owner == ANALYST


def test_a_report_of_a_child_is_the_roots_owners(tasks: Tasks, store: DynamoTaskStore) -> None:
    told = event("new-child", "registered", 0, 5, parent_id="task-done", root_id="task-done")
    (answer,) = tasks.report([told], NOW, may_create=True)
    assert answer.status == HTTPStatus.NO_CONTENT
    assert store.records(["new-child"], NOW)["new-child"].record.owner == ANALYST


def test_a_late_report_changes_no_end(tasks: Tasks, store: DynamoTaskStore) -> None:
    tasks.report([event("task-done", "failed", 2, 200)], NOW, may_create=True)
    assert store.records(["task-done"], NOW)["task-done"].record == DONE


def test_the_report_of_a_claimed_end_replaces_a_cancellation(tasks: Tasks, store: DynamoTaskStore) -> None:
    tasks.report([event("task-canceled", "succeeded", 2, 200)], NOW, may_create=True)
    assert store.records(["task-canceled"], NOW)["task-canceled"].record.status == "succeeded"


def test_states_for_pre_flight(state: Recording) -> None:
    reader = StateReader(state.dynamodb, TABLE)  # type: ignore[arg-type]
    assert reader.read([StateQuery(id=PAUSED.id), StateQuery(id="task-failed")], NOW) == {
        PAUSED.id: TaskState(id=PAUSED.id, status="paused", pause_epoch=1),
        "task-failed": TaskState(id="task-failed", status="failed", generation=2),
    }


def test_a_paused_task_can_be_resumed(tasks: Tasks) -> None:
    seen: list[TaskRecord] = []

    def resume(record: TaskRecord, _hops: object) -> TaskRecord:
        seen.append(record)
        return replace(record, status="running", pause=None, resumed_epoch=check_paused(record))

    changed = tasks.update(PAUSED.id, resume, NOW)
    assert seen == [PAUSED]
    assert changed is not None
    assert changed.resumed_epoch == 1


def test_what_waits_is_found(state: Recording) -> None:
    waiting = PausedTasks(state.dynamodb, TABLE)  # type: ignore[arg-type]
    since = datetime(2026, 11, 20, 9, 0, 25, 500_000, tzinfo=UTC)
    assert list(waiting.paused(NOW)) == [PausedTask(PAUSED.id, "x-pause", since)]
    assert sorted(waiting.pause_releases(NOW), key=lambda task: task.task_id) == [
        PausedTask("task-canceled", "", since),
        PausedTask("task-resumed", "x-pause", since),
    ]


def test_tasks_are_found_by_hour_and_state(state: Recording) -> None:
    known = index(state)
    assert list(known.hours(NEWEST, NOW)) == ["2026-11-20T09", "2026-11-20T08"]
    opened = known.listed("2026-11-20T09", ["open"], NEWEST, 20)
    assert {key.task_id for key in opened.keys} == {CHILD.id, PAUSED.id, "task-resumed", "task-reported"}
    assert opened.keys[0] == ListKey(f"2026-11-20T09:01:00.000000Z#{ANALYST}", CHILD.id)
    assert [key.task_id for key in known.listed("2026-11-20T09", ["succeeded"], NEWEST, 20).keys] == ["task-done"]
    assert [key.task_id for key in known.listed("2026-11-20T09", ["failed"], NEWEST, 20).keys] == ["task-failed"]
    assert [key.task_id for key in known.listed("2026-11-20T08", ["failed"], NEWEST, 20).keys] == ["task-canceled"]


def test_children_and_what_is_due_are_found(state: Recording) -> None:
    known = index(state)
    assert [key.task_id for key in known.children("task-failed", NEWEST, 20).keys] == [CHILD.id]
    assert set(known.due("2026-11-20T09:45")) == {"task-done", PAUSED.id}
    assert set(known.due("2026-11-20T12:30")) == {CHILD.id}


def test_a_list_goes_on_from_a_cursor_that_a_client_holds(
    state: Recording, store: DynamoTaskStore, tasks: Tasks
) -> None:
    marks = SweepMarks(state.dynamodb, TABLE)  # type: ignore[arg-type]
    lists = TaskLists(ListScan(index(state), OverdueTasks(index(state), store, marks)), store, tasks)
    query = read_list_query({"limit": "2", "cursor": state.texts["cursor"]}, "tasks", (str, str))
    page = lists.page(query, ANALYST, NOW)
    first = lists.page(read_list_query({"limit": "2"}, "tasks", (str, str)), ANALYST, NOW)
    assert [task.id for task in first.tasks] == [CHILD.id, "task-reported"]
    assert [task.id for task in page.tasks] == ["task-done", PAUSED.id]


def test_an_idempotency_key_stands_for_its_task(state: Recording) -> None:
    keys = IdempotencyKeys(state.dynamodb, TABLE, RETENTION, names.GATEWAY_API)  # type: ignore[arg-type]
    assert keys.task_of(ANALYST, "finished") == "task-done"
    assert keys.claim(IdempotencyKey(ANALYST, "finished", "digest-1"), "other", NOW) == StartedTask("task-done")
    assert keys.claim(IdempotencyKey(ANALYST, "finished", "digest-2"), "other", NOW) == KeyMismatch()
    assert keys.claim(IdempotencyKey(ANALYST, "at work", "digest-1"), "other", at(10)) == InProgress()
    assert keys.claim(IdempotencyKey(ANALYST, "at work", "digest-1"), "other", at(60)) == KeyClaim(
        "task-begun", at(0), may_be_sent=True
    )
    # Nothing was sent, so the task begins with the repetition.
    assert keys.claim(IdempotencyKey(ANALYST, "released", "digest-1"), "other", at(1)) == KeyClaim(
        "task-refused", at(1)
    )
    assert keys.claim(IdempotencyKey("somebody else", "finished", "digest-1"), "other", NOW) == KeyClaim("other", NOW)


def test_the_sweep_goes_on_where_it_was(state: Recording) -> None:
    assert SweepMarks(state.dynamodb, TABLE).read() == SWEPT  # type: ignore[arg-type]


def test_push_configurations_are_read(state: Recording) -> None:
    configs = PushConfigStore(state.dynamodb, TABLE, RETENTION)  # type: ignore[arg-type]
    assert configs.all("task-done") == PUSHES
    assert configs.read("task-done", "config-2") == PUSHES["config-2"]
    configs.delete("task-done", "config-1")
    assert configs.all("task-done") == {"config-2": PUSHES["config-2"]}


def test_what_handlers_said_is_read(state: Recording) -> None:
    flies = PartialStore(state.dynamodb, TABLE, pytest.fail)  # type: ignore[arg-type]
    assert list(flies.read("task-done", at(60))) == [
        PartialBatch(
            id="task-done",
            generation=0,
            position=1,
            attempt=1,
            receive=receive,
            actor="clean-flights",
            messages=tuple(Partial(sequence=each.sequence, at=each.at, data=each.data) for each in some),
        )
        for receive, some in ((1, FLIES[:2]), (2, FLIES[2:]))
    ]
    assert list(flies.read("task-done", at(2 * 3600))) == []


def test_a_change_of_the_table_is_read_as_a_record(state: Recording) -> None:
    """The stream of the table carries items as they were written."""
    images = {item["pk"]["S"]: item for item in state.items("tasks") if item["sk"]["S"] == "record"}
    assert {task_id: record_of(images[task_id]) for task_id in RECORDS} == RECORDS
    assert images["task-done"]["is_watched"] == {"BOOL": True}
    assert not any("is_watched" in images[task_id] for task_id in RECORDS if task_id != "task-done")


def test_items_written_now_are_as_they_were(state: Recording, store: DynamoTaskStore) -> None:
    """Both versions work on one table while a deployment is going on: what this one writes, the earlier one reads."""
    items = state.dynamodb.tables[TABLE].items
    before = dict(items)
    written = {("LISTED", f"hour#2026-11-20T{hour}") for hour in ("08", "09")}
    written |= {key for key in before if key[0] in RECORDS and key[1].startswith(("record", "hop#"))}
    for key in written:
        del items[key]
    for record in RECORDS.values():
        store.put_record(record, None, at(30))
    assert store.put_hops(HOPS, at(30)) == frozenset()
    assert items == before


def test_json_of_a_view_has_the_same_members(tasks: Tasks) -> None:
    task = tasks.read("task-failed", NOW)
    shown: dict[str, Any] = msgspec.to_builtins(task)
    assert set(shown) == {
        *("id", "status", "progress_percent", "actor", "route", "attempt", "result_uri", "error", "error_group"),
        *("reason", "created_at", "updated_at", "generation", "earlier", "owner"),
    }
