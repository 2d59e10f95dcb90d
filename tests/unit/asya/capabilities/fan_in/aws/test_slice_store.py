"""The stored slices (protocol §9): each stored once, over several partition keys, in the table or in S3."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.capabilities.fan_in.aws import sets
from asya.capabilities.fan_in.aws.slice_store import SliceStore, UnknownSliceError
from asya.capabilities.fan_in.sets import SetTooLargeError
from asya.protocol.errors import ErrorInfo
from asya.protocol.slices import SliceEnded, SliceHeader
from asya.testing.dynamo.tables import MemoryDynamo, Table
from asya.testing.services.direct import MemoryS3

TABLE = "asya-shop-fan-in"
EXPIRES = 2_000_000_000.9
LARGE_SET = 5_001


@pytest.fixture
def dynamodb() -> MemoryDynamo:
    return MemoryDynamo({TABLE: Table()})


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


@pytest.fixture(params=[False, True], ids=["one thread", "threads"])
def store(request: pytest.FixtureRequest, dynamodb: MemoryDynamo, s3: MemoryS3) -> SliceStore:
    return SliceStore(dynamodb, s3, table=TABLE, bucket="b", threaded=request.param)  # type: ignore[arg-type]


def put(store: SliceStore, index: int, body: bytes = b"{}", set_id: str = "s", count: int = 3) -> str | None:
    header = SliceHeader(
        actor="x-fan-in", set_id=set_id, origin_id="o", slice_index=index, slice_count=count, aggregation_key="/r"
    )
    return store.store(header, body, expires_at=EXPIRES)


def end(store: SliceStore, index: int, message: str, count: int = 3) -> None:
    error = ErrorInfo(type="ValueError", message=message)
    ended = SliceEnded(
        set_id="s", slice_index=index, slice_count=count, phase="failed", reason="RuntimeError", error=error
    )
    store.store_end(ended, expires_at=EXPIRES)


def keys(dynamodb: MemoryDynamo) -> Iterator[tuple[str, str]]:
    return ((item["pk"]["S"], item["sk"]["S"]) for item in dynamodb.tables[TABLE].items.values())


@pytest.mark.rule("9.stored-once")
def test_the_first_slice_of_an_index_counts(store: SliceStore) -> None:
    put(store, 1, b"first")
    put(store, 1, b"second")
    put(store, 10, b"ten", count=11, set_id="t")
    put(store, 9, b"nine", count=11, set_id="t")
    assert list(store.load_all("s", 3)) == [(1, b"first")]
    assert dict(store.load_all("t", 11)) == {9: b"nine", 10: b"ten"}
    assert store.load("s", 1, 3) == b"first"


@pytest.mark.rule("9.size")
def test_slices_above_4_kib_are_in_s3_under_their_content(store: SliceStore, s3: MemoryS3) -> None:
    large = b"x" * 4_097
    assert put(store, 2, large[1:], set_id="s t") is None
    assert s3.keys() == []
    uri = put(store, 1, large, set_id="s t")
    (key,) = s3.keys()
    assert key.startswith("slices/s%20t/000001-")
    assert uri == f"s3://b/{key}"
    put(store, 1, large + b"other", set_id="s t")
    assert store.load("s t", 1, 3) == large
    assert dict(store.load_all("s t", 3)) == {1: large, 2: large[1:]}


@pytest.mark.rule("9.size")
@settings(max_examples=30)
@given(sizes=st.lists(st.integers(1, 9_000), min_size=1, max_size=6), limit=st.integers(0, 40_000) | st.none())
def test_no_slice_of_a_set_that_is_too_large_is_read(sizes: list[int], limit: int | None) -> None:
    """Several are read at the same time: their sizes count before, so the process never has more of them."""
    s3 = MemoryS3()
    store = SliceStore(MemoryDynamo({TABLE: Table()}), s3, table=TABLE, bucket="b")  # type: ignore[arg-type]
    bodies = {index: b"x" * size for index, size in enumerate(sizes)}
    for index, body in bodies.items():
        put(store, index, body, count=len(sizes))
    if limit is None or sum(sizes) <= limit:
        assert dict(store.load_all("s", len(sizes), limit)) == bodies
        return
    s3.fails = lambda _found, key: pytest.fail(f"{key} was read")
    with pytest.raises(SetTooLargeError):
        list(store.load_all("s", len(sizes), limit))


@pytest.mark.rule("9.size")
def test_a_large_set_is_spread_over_partition_keys(store: SliceStore, dynamodb: MemoryDynamo) -> None:
    for index in range(LARGE_SET):
        put(store, index, str(index).encode(), count=LARGE_SET)
    counts = [sum(pk == each for pk, _ in keys(dynamodb)) for each in {pk for pk, _ in keys(dynamodb)}]
    assert len(counts) == sets.SHARD_LIMIT
    assert max(counts) <= sets.SLICES_PER_SHARD
    queries: list[Any] = []
    query = dynamodb.query
    dynamodb.query = lambda **request: queries.append(request) or query(**request)  # type: ignore[method-assign,func-returns-value]
    assert dict(store.load_all("s", LARGE_SET)) == {index: str(index).encode() for index in range(LARGE_SET)}
    assert len(queries) == sets.SHARD_LIMIT


def test_a_small_set_is_read_with_one_query(store: SliceStore, dynamodb: MemoryDynamo) -> None:
    for index in range(sets.SLICES_PER_SHARD):
        put(store, index, count=sets.SLICES_PER_SHARD)
    assert {pk for pk, _ in keys(dynamodb)} == {"s"}


@pytest.mark.rule("12.failed-only")
@pytest.mark.parametrize("count", [5, LARGE_SET])
def test_the_results_of_a_set_are_copied_with_their_objects(store: SliceStore, s3: MemoryS3, count: int) -> None:
    large = b"x" * 5_000
    for index, body in enumerate((b"origin", b"one", large)):
        put(store, index, body, count=count)
    for _ in range(2):
        assert store.copy_results("s", "t", count, expires_at=EXPIRES) == {1, 2}
    assert dict(store.load_all("t", count)) == {1: b"one", 2: large}
    assert len(s3.keys()) == 1
    assert store.copy_results("nobody", "u", count, expires_at=EXPIRES) == frozenset()


def test_the_first_error_of_a_slice_counts(store: SliceStore) -> None:
    for count in (3, LARGE_SET):
        end(store, 1, "first", count)
        end(store, 1, "second", count)
        error = store.load_error("s", 1, count)
        assert error is not None
        assert error.message == "slice 1: first"
        assert store.load_error("s", 2, count) is None


def test_a_slice_that_is_not_stored(store: SliceStore) -> None:
    with pytest.raises(UnknownSliceError, match="slice 3 of set nobody"):
        store.load("nobody", 3, 5)
    assert list(store.load_all("nobody", 5)) == []


@pytest.mark.rule("9.expiry")
def test_everything_expires(store: SliceStore, dynamodb: MemoryDynamo) -> None:
    put(store, 1)
    put(store, 1, count=LARGE_SET)
    end(store, 2, "bad")
    assert {item["expires_at"]["N"] for item in dynamodb.tables[TABLE].items.values()} == {"2000000000"}
    assert len(dynamodb.tables[TABLE].items) == 3
