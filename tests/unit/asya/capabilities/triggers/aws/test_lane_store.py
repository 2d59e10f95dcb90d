"""The transactions of lanes on DynamoDB: one writer wins, and a decision is written with all that it changes or not at all."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.lane_changes import arrive
from asya.capabilities.triggers.lanes import Entry, LaneKey, entry_of, lane_of
from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol.task import StartedBy
from asya.protocol.triggers import EventSource, Trigger
from asya.tasks.aws.task_store import TaskStoreError
from tests.doubles.dynamo import emulated_tasks

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
QUEUED = Trigger(route=("greet",), event=EventSource(source=("shop",)), overlap="queue")
RETENTION = 86400.0


@pytest.fixture
def client() -> "Iterator[DynamoDBClient]":
    with emulated_tasks() as client:
        yield client


@pytest.fixture
def store(client: "DynamoDBClient") -> LaneStore:
    return LaneStore(client, "tasks", RETENTION)


def occurrence(number: int, size: int = 0) -> Entry:
    """An event; each is sent a second after the one before."""
    payload = msgspec.Raw(msgspec.json.encode({"number": number, "text": "x" * size}))
    by = StartedBy(kind="trigger", name="orders")
    return entry_of(Occurrence("orders", f"event {number}", payload, by), f"2026-11-26T11:00:{number:02d}.000000Z")


def decide(store: LaneStore, entry: Entry, now: datetime = NOW) -> Any:
    """Decide about an occurrence from what the lane is now."""
    key = lane_of(entry.occurrence, QUEUED)
    seen = store.read(key)
    return store.decide(key, seen, arrive(seen.lane, QUEUED, entry, now), entry, now)


KEY = lane_of(occurrence(1).occurrence, QUEUED)


@pytest.mark.rule("16.lane.once", "16.lane.state")
def test_16_an_occurrence_has_one_decision(store: LaneStore) -> None:
    """A second process that has seen the same lane, or a later one, writes nothing."""
    first = occurrence(1)
    seen = store.read(KEY)
    change = arrive(seen.lane, QUEUED, first, NOW)
    written = store.decide(KEY, seen, change, first, NOW)
    assert written == store.read(KEY)
    assert store.decide(KEY, seen, change, first, NOW) == "decided"
    assert decide(store, first) == "decided"
    found = store.decision(first.start.id)
    assert found is not None
    assert (found.lane, found.outcome) == (KEY, "started")
    assert store.read(KEY).revision == 1


@pytest.mark.rule("16.lane.state", "16.lane.once")
def test_16_of_two_that_have_seen_the_same_lane_one_writes(store: LaneStore) -> None:
    """The other leaves neither a decision nor a payload, and decides again."""
    decide(store, occurrence(1))
    seen = store.read(KEY)
    second, third = occurrence(2), occurrence(3)
    changes = [arrive(seen.lane, QUEUED, entry, NOW) for entry in (second, third)]
    assert store.decide(KEY, seen, changes[0], second, NOW) not in ("conflict", "decided")
    assert store.decide(KEY, seen, changes[1], third, NOW) == "conflict"
    assert store.change(KEY, seen, changes[1], NOW) is None
    assert store.decision(third.start.id) is None
    assert store.load(KEY, third.start) == []
    decide(store, third)
    assert store.read(KEY).lane.queued == 2
    oldest = store.oldest(KEY)
    assert oldest is not None
    assert oldest.id == second.start.id


@pytest.mark.rule("16.lane.once")
def test_16_a_decision_that_has_expired_is_none(store: LaneStore) -> None:
    """DynamoDB deletes it later, and keeps nobody from deciding until then."""
    decide(store, occurrence(1))
    assert decide(store, occurrence(1), NOW + timedelta(seconds=RETENTION - 1)) == "decided"
    assert decide(store, occurrence(1), NOW + timedelta(seconds=RETENTION)) not in ("conflict", "decided")


@pytest.mark.rule("16.lane.state")
def test_16_a_large_payload_is_several_items(store: LaneStore, client: "DynamoDBClient") -> None:
    """An item has 400 KB at most."""
    entry = occurrence(1, size=900_000)
    decide(store, entry)
    (loaded,) = store.load(KEY, entry.start)
    assert loaded == entry.occurrence
    store.forget(KEY, entry.start)
    assert store.load(KEY, entry.start) == []
    assert len(client.scan(TableName="tasks")["Items"]) == 2  # the lane and the decision


@pytest.mark.rule("16.lane.repair")
def test_16_lanes_that_wait_are_found_until_nothing_waits(store: LaneStore) -> None:
    decide(store, occurrence(1))
    assert [key for key, _ in store.due(NOW - timedelta(seconds=1))] == []
    assert [(key, stored.revision) for key, stored in store.due(NOW)] == [(KEY, 1)]


class Conflicting:
    """The client of a table on which another transaction is at work, or of one that refuses all."""

    def __init__(self, client: "DynamoDBClient", *codes: str) -> None:
        self._client, self._codes = client, codes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def transact_write_items(self, **_: object) -> None:
        error = {"Code": "TransactionCanceledException", "Message": "canceled"}
        reasons = [{"Code": code} for code in self._codes]
        raise ClientError({"Error": error, "CancellationReasons": reasons}, "TransactWriteItems")  # type: ignore[typeddict-unknown-key]


@pytest.mark.rule("16.lane.state")
def test_16_another_transaction_at_work_is_a_conflict(client: "DynamoDBClient") -> None:
    """A full table is an outage, after which the message comes again."""
    conflicting: Any = Conflicting(client, "None", "TransactionConflict", "None")
    assert decide(LaneStore(conflicting, "tasks", RETENTION), occurrence(1)) == "conflict"
    throttled: Any = Conflicting(client, "None", "ThrottlingError", "None")
    with pytest.raises(TaskStoreError, match="write the lane of a trigger"):
        decide(LaneStore(throttled, "tasks", RETENTION), occurrence(1))


def test_a_lane_that_nobody_has_written_is_empty(store: LaneStore) -> None:
    stored = store.read(LaneKey("orders", "other"))
    assert (stored.lane.is_empty, stored.revision, store.oldest(KEY)) == (True, 0, None)


@pytest.mark.rule("16.lane.repair")
@pytest.mark.slow
def test_16_the_lanes_that_wait_are_read_many_at_a_time(client: "DynamoDBClient", store: LaneStore) -> None:
    """A sweep has a minute for thousands of lanes, such as one for each customer with a running task."""
    by_number = msgspec.structs.replace(QUEUED, by="/number")
    for number in range(40):
        entry = occurrence(number)
        key = lane_of(entry.occurrence, by_number)
        store.decide(key, store.read(key), arrive(store.read(key).lane, by_number, entry, NOW), entry, NOW)
    calls: list[str] = []
    client.meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    assert len({key for key, _ in store.due(NOW)}) == 40
    assert (calls.count("BatchGetItem"), calls.count("GetItem")) == (8, 0)
