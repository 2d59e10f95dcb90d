"""The storage port: one contract for the DynamoDB table and its double in memory."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.hops import hop_records
from asya.protocol.task import EarlierGeneration, TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.task_store import Conflict, StoredRecord, TaskStore, TaskStoreError
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import at, event, hop, route_at, run_note

RETENTION = 3600.0


@pytest.fixture(params=["dynamodb", "memory"])
def store(request: pytest.FixtureRequest) -> Iterator[TaskStore]:
    if request.param == "memory":
        yield MemoryTaskStore(RETENTION)
        return
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        create_tasks_table(client, "asya-flights-tasks")
        yield DynamoTaskStore(client, "asya-flights-tasks", RETENTION, sleep=lambda _: None)


def record(task_id: str = "t", **more: object) -> TaskRecord:
    moment = format_time(at(0))
    fields: dict[str, Any] = {"status": "pending"} | more
    return TaskRecord(id=task_id, created_at=moment, updated_at=moment, **fields)


FULL = record(
    "täsk/ü #1",
    status="failed",
    generation=2,
    parent_id="p",
    root_id="r",
    owner="AIDA",
    deadline_at=format_time(at(60)),
    actor="clean-flights",
    route=route_at(1),
    attempt=3,
    result=Raw(b'{"mean": 0.1000000000000000055511151231257827, "text": "\xc3\xa4", "none": null}'),
    result_uri="s3://bucket/failed/t.json",
    error=ErrorInfo(type="ValueError", message="no", mro=("Exception",), traceback="Traceback\n"),
    reason="PolicyExhausted",
    pause_epoch=0,
    earlier=(
        EarlierGeneration(generation=0, status="failed", ended_at=format_time(at(1)), actor="a", reason="Timeout"),
        EarlierGeneration(generation=1, status="running", error=ErrorInfo(type="ValueError", message="no")),
    ),
)


def test_a_record_comes_back_as_it_was(store: TaskStore) -> None:
    for each in (FULL, record()):
        assert store.put_record(each, None, at(0)) == StoredRecord(each, 1)
    found = store.records([FULL.id, "t", "unknown"], at(1), consistent=True)
    assert {task_id: stored.record for task_id, stored in found.items()} == {FULL.id: FULL, "t": record()}


def test_hops_come_back_as_they_were(store: TaskStore) -> None:
    store.put_record(record(), None, at(0))
    parts = [*hop_records(hop("t", 0)), *hop_records(hop("t", 1)[:2]), *hop_records(hop("t", 2, attempt=12)[:1])]
    long_names = tuple(f"a-rather-long-actor-name-{number}" for number in range(40))
    parts += hop_records([event("t", "completed", 30, route=route_at(30, long_names), actor="other")])
    assert store.put_hops(parts, at(1)) == frozenset()
    assert [part.key for part in store.hops("t", at(1))] == [part.key for part in parts]
    assert [part.key for part in store.hops("t", at(1), after=parts[1].key)] == [part.key for part in parts[2:]]
    loaded = store.load("t", at(2))
    assert loaded is not None
    assert loaded[0] == record()
    assert sorted(loaded[1], key=lambda part: part.position) == parts


def test_a_conflict_returns_the_present_record(store: TaskStore) -> None:
    assert store.put_record(record(), None, at(0)) == StoredRecord(record(), 1)
    conflict = store.put_record(record(owner="other"), None, at(0))
    assert isinstance(conflict, Conflict)
    assert conflict.current is not None
    assert conflict.current.record == record()
    running = replace(record(), status="running")
    assert store.put_record(running, conflict.current, at(0)) == StoredRecord(running, 2)
    late = store.put_record(replace(record(), status="failed"), conflict.current, at(0))
    assert isinstance(late, Conflict)
    assert late.current is not None
    assert late.current.record == running


def test_replacing_a_missing_record_is_a_conflict(store: TaskStore) -> None:
    store.put_record(record(), None, at(0))
    seen = store.records(["t"], at(0))["t"]
    store.withdraw("t")
    assert store.put_record(record(status="running"), seen, at(0)) == Conflict(None)


def test_only_an_unchanged_new_record_is_withdrawn(store: TaskStore) -> None:
    store.put_record(record("a"), None, at(0))
    store.put_record(record("b", status="running"), None, at(0))
    store.put_record(record("c"), None, at(0))
    store.put_record(record("c", owner="AIDA"), store.records(["c"], at(0))["c"], at(0))
    for task_id in ("a", "b", "c", "unknown"):
        store.withdraw(task_id)
    assert set(store.records(["a", "b", "c"], at(0))) == {"b", "c"}


def test_expired_items_are_not_read(store: TaskStore) -> None:
    store.put_record(record(), None, at(0))
    store.put_record(record("later", deadline_at=format_time(at(500))), None, at(0))
    after = at(RETENTION + 1)
    assert store.load("t", after) is None
    assert set(store.records(["t", "later"], after)) == {"later"}
    assert isinstance(store.put_record(record(owner="somebody new"), None, after), StoredRecord)


def test_hops_without_a_record_are_no_task(store: TaskStore) -> None:
    store.put_hops(hop_records(hop("t", 0)), at(0))
    assert store.load("t", at(0)) is None


@pytest.mark.rule("10.progress.never-back")
def test_an_older_note_on_a_job_run_replaces_no_newer_one(store: TaskStore) -> None:
    for seconds, shown in ((10, 10), (30, 30), (20, 30), (30, 30), (40, 40)):
        hops = hop_records([event("t", "processing", 0, 1, run=run_note(seconds)), event("o", "processing")])
        assert store.put_hops(hops, at(0)) == frozenset()
        assert [part.run for part in store.hops("t", at(0))] == [run_note(shown)]
    assert [part.run for part in store.hops("o", at(0))] == [None]


@pytest.mark.rule("10.progress.never-back")
def test_the_notes_of_two_attempts_are_apart(store: TaskStore) -> None:
    for attempt, seconds in ((1, 30), (2, 10)):
        store.put_hops(hop_records([event("t", "processing", 0, 1, run=run_note(seconds), attempt=attempt)]), at(0))
    assert [part.run for part in store.hops("t", at(0))] == [run_note(30), run_note(10)]


def test_a_task_whose_id_looks_like_a_key_is_a_task(store: TaskStore) -> None:
    store.put_record(record("KEY#abc"), None, at(0))
    assert store.load("KEY#abc", at(0)) is not None


@pytest.mark.slow
def test_many_tasks_and_hops_at_once(store: TaskStore) -> None:
    ids = [f"t{number}" for number in range(110)]
    for task_id in ids:
        store.put_record(record(task_id), None, at(0))
    assert set(store.records([*ids, *ids], at(0))) == set(ids)
    store.put_hops([part for position in range(60) for part in hop_records(hop("t0", position, attempt=2))], at(0))
    loaded = store.load("t0", at(0))
    assert loaded is not None
    assert {part.position for part in loaded[1]} == set(range(60))


# --- what only the table does ---------------------------------------------------------------------------------------


class Busy:
    """A client whose batch calls return unprocessed items, `times` times."""

    def __init__(self, client: Any, times: int) -> None:
        self._client = client
        self.times = times
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def batch_write_item(self, RequestItems: dict[str, list[Any]]) -> Any:  # noqa: N803 - boto3's name
        return self._partly(self._client.batch_write_item, "UnprocessedItems", RequestItems, lambda items: items)

    def batch_get_item(self, RequestItems: dict[str, Any]) -> Any:  # noqa: N803
        return self._partly(self._client.batch_get_item, "UnprocessedKeys", RequestItems, lambda keys: keys["Keys"])

    def _partly(self, call: Any, word: str, requests: dict[str, Any], items: Callable[[Any], list[Any]]) -> Any:
        self.calls += 1
        if self.times <= 0:
            return call(RequestItems=requests)
        self.times -= 1
        [(table, request)] = requests.items()
        left = items(request)[:1]
        rest = items(request)[1:]
        done = (
            call(RequestItems={table: rest if isinstance(request, list) else request | {"Keys": rest}})
            if rest
            else {"Responses": {}}
        )
        return done | {word: {table: left if isinstance(request, list) else {"Keys": left}}}


@pytest.fixture
def table() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        create_tasks_table(client, "tasks")
        yield client


def test_unprocessed_items_are_retried(table: Any) -> None:
    pauses: list[float] = []
    store = DynamoTaskStore(Busy(table, times=2), "tasks", RETENTION, sleep=pauses.append)  # type: ignore[arg-type]
    assert store.put_hops(hop_records([*hop("a", 0), *hop("b", 0)]), at(0)) == frozenset()
    assert len(pauses) == 2
    assert pauses[0] < pauses[1]


def test_unwritten_items_are_returned_by_task(table: Any) -> None:
    store = DynamoTaskStore(Busy(table, times=99), "tasks", RETENTION, sleep=lambda _: None)  # type: ignore[arg-type]
    assert store.put_hops(hop_records([*hop("a", 0), *hop("b", 0)]), at(0)) == {"a"}


def test_a_read_is_complete_or_fails(table: Any) -> None:
    calm = DynamoTaskStore(table, "tasks", RETENTION)
    for task_id in "abc":
        calm.put_record(record(task_id), None, at(0))
    busy = DynamoTaskStore(Busy(table, times=2), "tasks", RETENTION, sleep=lambda _: None)  # type: ignore[arg-type]
    assert set(busy.records("abc", at(0))) == set("abc")
    never = DynamoTaskStore(Busy(table, times=99), "tasks", RETENTION, sleep=lambda _: None)  # type: ignore[arg-type]
    with pytest.raises(TaskStoreError, match="throttles the reads"):
        never.records("abc", at(0))


def test_errors_of_the_table_name_the_operation(table: Any) -> None:
    store = DynamoTaskStore(table, "no-such-table", RETENTION)
    with pytest.raises(TaskStoreError, match=r"cannot register an hour that contains tasks: .*ResourceNotFound"):
        store.put_record(record(), None, at(0))
    with pytest.raises(TaskStoreError, match="cannot read task t"):
        store.load("t", at(0))


class Counting:
    """A client that counts its calls that write."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("put_item", "batch_write_item"):
            self.calls.append(name)
        return getattr(self._client, name)


def test_only_hops_of_a_running_job_take_a_call_each(table: Any) -> None:
    client = Counting(table)
    store = DynamoTaskStore(client, "tasks", RETENTION)  # type: ignore[arg-type]
    ended = event("t", "completed", 9, run=run_note(9))
    store.put_hops(hop_records([ended, *(each for position in range(9) for each in hop("t", position))]), at(0))
    assert client.calls == ["batch_write_item"]
    store.put_hops(hop_records([event("t", "processing", 9, run=run_note(1)), *hop("o", 0)]), at(0))
    assert client.calls == ["batch_write_item", "batch_write_item", "put_item"]


def test_errors_of_a_write_of_a_running_job_name_the_operation(table: Any) -> None:
    store = DynamoTaskStore(table, "no-such-table", RETENTION)
    with pytest.raises(TaskStoreError, match="cannot write a hop of task t"):
        store.put_hops(hop_records([event("t", "processing", 0, run=run_note(1))]), at(0))


@pytest.mark.slow
def test_threads_write_the_hops_of_running_jobs_and_pass_their_errors_on(table: Any) -> None:
    hops = hop_records([event(f"t{number}", "processing", run=run_note(number)) for number in range(40)])
    store = DynamoTaskStore(table, "tasks", RETENTION, threaded=True)
    assert store.put_hops(hops, at(0)) == frozenset()
    assert [[part.run for part in store.hops(hop.id, at(0))] for hop in hops] == [[hop.run] for hop in hops]
    with pytest.raises(TaskStoreError, match="cannot write a hop of task t"):
        DynamoTaskStore(table, "no-such-table", RETENTION, threaded=True).put_hops(hops, at(0))


@pytest.mark.parametrize(("deadline_at", "days"), [("9999-12-31T23:59:59.999999Z", 366), ("0001-01-01T00:00:00Z", 0)])
def test_no_deadline_keeps_a_record_for_ever(table: Any, deadline_at: str, days: int) -> None:
    store = DynamoTaskStore(table, "tasks", RETENTION)
    store.put_record(record("t", deadline_at=deadline_at), None, at(0))
    (expires,) = {item["expires_at"]["N"] for item in table.scan(TableName="tasks")["Items"] if item["pk"]["S"] == "t"}
    assert expires == str(int(at(RETENTION + days * 86_400).timestamp()))


def test_keys_and_sizes_of_items(table: Any) -> None:
    store = DynamoTaskStore(table, "tasks", RETENTION)
    store.put_record(record("t", route=route_at(0), owner="AIDA"), None, at(0))
    store.put_hops(hop_records([*hop("t", 0), *hop("t", 1)[:2], *hop("t", 2, generation=1)[:1]]), at(0))
    items = {item["sk"]["S"]: item for item in table.scan(TableName="tasks")["Items"]}
    assert items.pop("hour#2026-11-20T09")["pk"] == {"S": "LISTED"}
    assert {key.rpartition("#")[0] if key.startswith("hops#") else key for key in items} == {
        "record",
        "hops#0000#000000#000001",
        "hop#0001#000002#000001#received",
    }
    assert {item["pk"]["S"] for item in items.values()} == {"t"}
    assert {item["expires_at"]["N"] for item in items.values()} == {str(int(at(RETENTION).timestamp()))}
    assert max(len(str(item)) for item in items.values()) < 1024
