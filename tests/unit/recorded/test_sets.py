"""Sets of slices that an earlier version wrote are counted, merged and ended by this one (`protocol §9`)."""

from datetime import UTC, datetime

import msgspec
import pytest

from asya.fan_in.aws.items import OpenSet, SetRecord
from asya.fan_in.aws.sets import FanInSets, SetTimes, SliceCountError
from asya.fan_in.aws.slice_store import SliceStore
from asya.fan_in.sets import Decision, SetState
from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.slices import SetDue, SliceEnded, SliceHeader, decode_message, slice_header
from tests.unit.recorded.recording import BUCKET, Recording, load

TABLE = "asya-shop-fan-in"
DUE = datetime(2026, 11, 20, 10, 0, 0, 123_456, tzinfo=UTC)
NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC).timestamp()
TIMES = SetTimes(due_at=DUE, expires_at=DUE.timestamp() + 7 * 86400)

OPEN, DECIDED, DELIVERED, FAILED = "set-open", "set-decided", "set-delivered", "set-failed"
ERROR = ErrorInfo(type="shop.BadOrder", message="no such airport", mro=("ValueError", "Exception"), traceback="…")
OUTER = SliceHeader(
    actor="gather", set_id="set-outer", origin_id="env-0", slice_index=2, slice_count=9, aggregation_key=""
)
ENDED = SliceEnded(set_id=OPEN, slice_index=3, slice_count=5, phase="failed", reason="RuntimeError", error=ERROR)
CANCELED = SliceEnded(set_id=FAILED, slice_index=1, slice_count=2, phase="canceled", reason="Canceled")
MERGED = Decision(how="merged", at="2026-11-20T09:20:00.000000Z", missing=(2, 3))
WHY = Decision(how="failed", at="2026-11-20T09:25:00.000000Z", reason="SliceFailed", error=ERROR)
LARGE = "e" * 66_000
"""A slice with this in it is kept in the bucket."""


def header(set_id: str, index: int, count: int = 5) -> SliceHeader:
    known = {"actor": "x-fan-in", "set_id": set_id, "origin_id": "env-1", "slice_index": index, "slice_count": count}
    outer = msgspec.Raw(msgspec.json.encode(OUTER)) if set_id == OPEN else msgspec.UNSET
    return SliceHeader(**known, aggregation_key="/by_airport", outer=outer)  # type: ignore[arg-type]


def envelope(set_id: str, index: int, payload: object) -> bytes:
    """A slice as it arrives."""
    content = {
        "id": f"{set_id}-{index}",
        "parent_id": "env-1",
        "route": {"prev": ["split", "score"], "curr": "x-fan-in", "next": ["post"]},
        "headers": {"x-asya-fan-in": header(set_id, index), "x-asya-root": "env-1"},
        "status": {"phase": "processing", "actor": "x-fan-in", "attempt": 1, "max_attempts": 1},
        "payload": payload,
    }
    return msgspec.json.encode(content)


@pytest.fixture
def state() -> Recording:
    return load("sets")


@pytest.fixture
def sets(state: Recording) -> FanInSets:
    return FanInSets(state.dynamodb, table=TABLE)  # type: ignore[arg-type]


@pytest.fixture
def slices(state: Recording) -> SliceStore:
    return SliceStore(state.dynamodb, state.s3, table=TABLE, bucket=BUCKET)  # type: ignore[arg-type]


def test_a_set_that_waits(sets: FanInSets) -> None:
    known = SetState(slice_count=5, arrived=frozenset({0, 1, 4}), lost=frozenset({3}), due_at=DUE)
    assert sets.get(OPEN) == SetRecord(OPEN, known, check_until=NOW + 900.5)
    assert sets.get("set-unheard-of") is None


def test_a_set_that_is_decided_and_leased(sets: FanInSets) -> None:
    known = SetState(slice_count=3, arrived=frozenset({0, 1}), lost=frozenset(), due_at=DUE, decision=MERGED)
    assert sets.get(DECIDED) == SetRecord(DECIDED, known, lease_until=NOW + 60)
    assert not sets.take_lease(DECIDED, epoch_seconds=NOW + 30)
    assert sets.take_lease(DECIDED, epoch_seconds=NOW + 61)
    assert sets.save_decision(DECIDED, WHY)[0].state.decision == MERGED


def test_a_tombstone(sets: FanInSets) -> None:
    record = sets.get(DELIVERED)
    assert record is not None
    assert record.state.delivered
    assert record.state.decision == Decision(how="merged", at="2026-11-20T09:20:00.000000Z")
    assert sets.count(DELIVERED, 2, arrived={1}, actor="x-fan-in", times=TIMES) == record


def test_a_set_that_failed(sets: FanInSets, slices: SliceStore) -> None:
    record = sets.get(FAILED)
    assert record is not None
    assert (record.state.decision, record.state.lost) == (WHY, {1})
    assert slices.load_error(FAILED, 1, 2) is None
    assert slices.load_error(OPEN, 3, 5) == ERROR
    assert slices.load_error(OPEN, 2, 5) is None


def test_slices_are_read_from_the_table_and_from_the_bucket(state: Recording, slices: SliceStore) -> None:
    payloads = {0: {"airports": ["EWR"]}, 1: {"mean": 12.5}, 4: {"text": LARGE}}
    assert dict(slices.load_all(OPEN, 5)) == {index: envelope(OPEN, index, payloads[index]) for index in payloads}
    assert slices.load(OPEN, 4, 5) == envelope(OPEN, 4, payloads[4])
    assert [key for key in state.objects if key.startswith("frames/fan-in/set-open/000004-")]


def test_a_slices_header_is_read_with_the_one_around_it(slices: SliceStore) -> None:
    found = slice_header(decode(slices.load(OPEN, 1, 5)))
    assert found == header(OPEN, 1)
    assert found is not None
    assert found.enclosing == OUTER


def test_the_first_that_came_under_an_index_counts(slices: SliceStore) -> None:
    slices.store(header(OPEN, 1), b'{"other":1}', expires_at=TIMES.expires_at)
    assert slices.load(OPEN, 1, 5) == envelope(OPEN, 1, {"mean": 12.5})


def test_a_set_goes_on(sets: FanInSets, slices: SliceStore) -> None:
    assert slices.store(header(OPEN, 2), envelope(OPEN, 2, None), expires_at=TIMES.expires_at) is None
    record = sets.count(OPEN, 5, arrived={2}, actor="x-fan-in", times=TIMES)
    assert (record.state.arrived, record.state.lost, record.state.due_at) == ({0, 1, 2, 4}, {3}, DUE)
    decided, was_saved = sets.save_decision(OPEN, MERGED, lease_from=NOW)
    assert (decided.state.decision, was_saved) == (MERGED, True)
    sets.mark_delivered(OPEN, expires_at=TIMES.expires_at)
    assert OPEN not in {each.set_id for each in sets.open_sets()}


def test_the_number_of_slices_stands(sets: FanInSets) -> None:
    with pytest.raises(SliceCountError, match="has 5 slices, but slice 2 states 6"):
        sets.count(OPEN, 6, arrived={2}, actor="x-fan-in", times=TIMES)


def test_open_sets_are_found(sets: FanInSets) -> None:
    found = sorted(sets.open_sets(), key=lambda each: each.set_id)
    assert found == [OpenSet(set_id, "x-fan-in", DUE) for set_id in (DECIDED, FAILED, OPEN)]


def test_messages_about_sets(state: Recording) -> None:
    assert [decode_message(body) for body in state.messages["x-fan-in"]] == [
        ENDED,
        CANCELED,
        SetDue(set_id=OPEN, until=NOW + 900.5),
    ]
