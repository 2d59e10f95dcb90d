"""The items of sets (protocol §9): slices counted once, decisions made once, leases, the index of open sets."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from asya.capabilities.fan_in.aws.sets import LEASE_SECONDS, FanInSets, SetTimes, SliceCountError, UnknownSetError
from asya.capabilities.fan_in.sets import Decision
from tests.doubles.dynamo import create_fan_in_table
from tests.doubles.envelopes import NOW

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TABLE = "asya-shop-fan-in"
TIMES = SetTimes(NOW + timedelta(hours=1), NOW.timestamp() + 8 * 86400)
EPOCH = NOW.timestamp()
MERGED, FAILED = Decision(how="merged", at="a", missing=(2,)), Decision(how="failed", at="b")


@pytest.fixture
def dynamodb() -> "Iterator[DynamoDBClient]":
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("dynamodb")
        create_fan_in_table(client, TABLE)
        yield client


@pytest.fixture
def sets(dynamodb: "DynamoDBClient") -> FanInSets:
    return FanInSets(dynamodb, table=TABLE)


def arrive(sets: FanInSets, *indices: int, set_id: str = "s", count: int = 3, times: SetTimes = TIMES) -> Any:
    return sets.count(set_id, count, arrived=set(indices), actor="x-fan-in", times=times)


def lose(sets: FanInSets, *indices: int) -> Any:
    return sets.count("s", 3, lost=set(indices), actor="x-fan-in", times=TIMES)


def test_each_arrival_sees_the_set_after_it(sets: FanInSets) -> None:
    seen = [arrive(sets, index).state for index in (1, 1, 0, 2)]
    assert [set(state.arrived) for state in seen] == [{1}, {1}, {0, 1}, {0, 1, 2}]
    assert [state.has_origin for state in seen] == [False, False, True, True]
    assert seen[0].due_at == TIMES.due_at


@pytest.mark.rule("9.count")
def test_the_slices_of_a_batch_are_counted_with_one_write(sets: FanInSets, dynamodb: "DynamoDBClient") -> None:
    calls: list[str] = []
    dynamodb.meta.events.register("before-call.dynamodb.*", lambda model, **_: calls.append(model.name))
    record = sets.count("s", 4, arrived={1, 0}, lost={1, 3}, actor="x-fan-in", times=TIMES)
    assert (record.state.arrived, record.state.lost) == ({0, 1}, {1, 3})
    assert calls == ["UpdateItem"]


def test_the_sets_time_is_that_of_its_first_arrival(sets: FanInSets) -> None:
    arrive(sets, 1)
    later = SetTimes(TIMES.due_at + timedelta(hours=1), TIMES.expires_at + 3600)
    assert arrive(sets, 2, times=later).state.due_at == TIMES.due_at


def test_another_number_of_slices_is_refused(sets: FanInSets) -> None:
    arrive(sets, 1)
    with pytest.raises(SliceCountError, match="set s has 3 slices, but slice 2 states 5"):
        arrive(sets, 2, count=5)
    record = sets.get("s")
    assert record is not None
    assert record.state.arrived == {1}


@pytest.mark.rule("9.set-size")
def test_a_set_that_no_fan_out_can_have_is_not_made(sets: FanInSets) -> None:
    with pytest.raises(SliceCountError, match="set s: slice_count is over 5001"):
        arrive(sets, 1, count=5002)
    assert sets.get("s") is None
    assert arrive(sets, 1, count=5001).state.slice_count == 5001


def test_of_two_decisions_the_first_stands(sets: FanInSets) -> None:
    arrive(sets, 0)
    record, ours = sets.save_decision("s", MERGED, lease_from=EPOCH)
    assert (record.state.decision, ours, record.lease_until) == (MERGED, True, EPOCH + LEASE_SECONDS)
    record, ours = sets.save_decision("s", FAILED, lease_from=EPOCH + 1)
    assert (record.state.decision, ours, record.lease_until) == (MERGED, False, EPOCH + LEASE_SECONDS)


def test_a_lease_is_taken_by_one_until_it_is_over_or_given_back(sets: FanInSets) -> None:
    arrive(sets, 0)
    assert not sets.take_lease("s", epoch_seconds=EPOCH)  # nothing is decided
    sets.save_decision("s", MERGED)
    assert sets.take_lease("s", epoch_seconds=EPOCH)
    assert not sets.take_lease("s", epoch_seconds=EPOCH + LEASE_SECONDS - 1)
    taken_over = EPOCH + LEASE_SECONDS + 1
    assert sets.take_lease("s", epoch_seconds=taken_over)
    sets.release_lease("s", until=EPOCH + LEASE_SECONDS)  # of the slow process that lost it
    assert not sets.take_lease("s", epoch_seconds=taken_over + 1)
    sets.release_lease("s", until=taken_over + LEASE_SECONDS)
    assert sets.take_lease("s", epoch_seconds=EPOCH + LEASE_SECONDS + 2)
    sets.mark_delivered("s", expires_at=EPOCH)
    assert not sets.take_lease("s", epoch_seconds=EPOCH + 10 * LEASE_SECONDS)


@pytest.mark.rule("9.expiry")
def test_a_done_set_takes_nothing_more(sets: FanInSets) -> None:
    arrive(sets, 0)
    sets.save_decision("s", FAILED)
    sets.mark_delivered("s", expires_at=EPOCH)
    state = arrive(sets, 1).state
    assert (state.delivered, state.arrived) == (True, {0})
    assert lose(sets, 2).state.lost == frozenset()
    assert list(sets.open_sets()) == []


def test_the_index_holds_sets_until_they_are_done(sets: FanInSets) -> None:
    for set_id in ("s", "t", "u"):
        arrive(sets, 0, set_id=set_id)
    sets.save_decision("t", FAILED)
    sets.mark_delivered("t", expires_at=EPOCH)
    sets.leave_index("u")
    (found,) = sets.open_sets()
    assert (found.set_id, found.actor, found.due_at) == ("s", "x-fan-in", TIMES.due_at)


def test_a_pending_check_is_recorded(sets: FanInSets) -> None:
    assert arrive(sets, 0).check_until == 0
    sets.record_check("s", 12.5)
    record = sets.get("s")
    assert record is not None
    assert record.check_until == 12.5


def test_sets_that_are_not_known(sets: FanInSets) -> None:
    assert sets.get("nobody") is None
    with pytest.raises(UnknownSetError, match="nobody"):
        sets.record_check("nobody", 1.0)
    assert sets.get("nobody") is None


@pytest.mark.rule("9.expiry")
@pytest.mark.parametrize("shift", [-3.0, 3600.0])
def test_a_set_expires_with_the_timeout_that_holds(sets: FanInSets, dynamodb: "DynamoDBClient", shift: float) -> None:
    """A process that stands still counts its slice late, with the times of when it received it."""
    other = SetTimes(TIMES.due_at + timedelta(seconds=shift), TIMES.expires_at + shift)
    arrive(sets, 1)
    arrive(sets, 2, times=other)

    def expiry() -> float:
        item = dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "s"}, "sk": {"S": "set"}})["Item"]
        return float(item["expires_at"]["N"])

    assert expiry() == int(TIMES.expires_at)
    arrive(sets, 0, times=replace(other, is_of_origin=True))
    assert expiry() == int(other.expires_at)


@pytest.mark.rule("9.expiry")
def test_everything_expires(sets: FanInSets, dynamodb: "DynamoDBClient") -> None:
    arrive(sets, 0)
    lose(sets, 1)
    items = dynamodb.scan(TableName=TABLE)["Items"]
    assert {item["expires_at"]["N"] for item in items} == {str(int(TIMES.expires_at))}
    sets.mark_delivered("s", expires_at=EPOCH)
    item = dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "s"}, "sk": {"S": "set"}})["Item"]
    assert item["expires_at"]["N"] == str(int(EPOCH))
