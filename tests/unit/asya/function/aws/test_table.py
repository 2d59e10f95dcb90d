"""The table helper says on the wire what was meant, to a DynamoDB of others and to the kit's tables alike."""

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from asya.function.aws.table import Change, Table, ThrottledError, delete, put, update, where
from asya.function.aws.table_items import Item, Key, Value
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo
from tests.doubles.dynamo import emulated_tasks

KEY = Key("a", "record")


@pytest.fixture(params=["moto", "memory"])
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """A tasks table in both doubles."""
    if request.param == "memory":
        yield Table(memory(page_size=7), "tasks")
        return
    with emulated_tasks() as client:
        yield Table(client, "tasks")


def memory(**options: Any) -> Any:
    return MemoryDynamo({"tasks": new_table("tasks")}, **options)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
# DynamoDB keeps 38 digits.
integers = st.integers(-(10**38) + 1, 10**38 - 1)
decimals = st.decimals(-(10**6), 10**6, places=6)
scalars = st.one_of(texts, integers, decimals, st.booleans(), st.binary(max_size=5))
values: st.SearchStrategy[Value] = st.recursive(
    st.one_of(scalars, st.frozensets(texts, min_size=1), st.frozensets(integers, min_size=1)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@pytest.mark.slow
@given(values)
def test_a_value_is_read_as_it_was_written(value: Value) -> None:
    stored = Table(memory(), "tasks")
    stored.write(put(KEY, {"value": value}))
    read = stored.get(KEY)["value"]
    assert read == value
    assert isinstance(read, type(value) if not isinstance(value, Decimal) else (int, Decimal))


@given(st.floats(-1e12, 1e12, allow_nan=False))
def test_a_float_is_read_as_it_was_written(value: float) -> None:
    assert put(KEY, {"at": value}).item.number("at") == value


def test_an_item_is_written_and_read_by_both_doubles(table: Table) -> None:
    attributes: dict[str, Value] = {
        "text": "é",
        "count": 10**30,
        "at": 1764313200.123457,
        "rate": Decimal("0.10"),
        "yes": True,
        "body": b"\x00\xff",
        "holders": {"b", "a"},
        "arrived": {3, 1},
        "next": ["x", 2],
        "inner": {"since": 1.5},
    }
    table.write(put(KEY, {**attributes, "nothing": None, "empty": frozenset()}))
    item = table.get(KEY)
    assert dict(item) == {
        "pk": "a",
        "sk": "record",
        **attributes,
        "at": Decimal("1764313200.123457"),
        "inner": item["inner"],
    }
    assert (item.key, item.text("text"), item.integer("count")) == (KEY, "é", 10**30)
    assert (item.number("at"), item.flag("yes"), item.data("body")) == (1764313200.123457, True, b"\x00\xff")
    assert (item.texts("holders"), item.integers("arrived")) == (frozenset("ab"), frozenset({1, 3}))
    assert item.map("inner").number("since") == 1.5


def test_a_missing_attribute_has_a_default_or_is_an_error() -> None:
    item = put(KEY, {"count": 1, "parts": [1, 2]}).item
    assert (item.text("of", None), item.integer("left", 0), item.list_of(str, "next")) == (None, 0, [])
    assert (item.list_of(int, "parts"), dict(item.map("of"))) == ([1, 2], {})
    assert not item.texts("of") | item.integers("of")
    with pytest.raises(KeyError, match="of"):
        item.text("of")
    with pytest.raises(ValueError, match="the attribute 'count' has the type N, not S"):
        item.text("count")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), "no number nan"),
        (float("inf"), "no number inf"),
        ([set[str]()], "no empty sets"),
        (object(), "type object"),
    ],
)
def test_what_dynamodb_does_not_have_is_refused(value: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        put(KEY, {"value": value}).request("tasks")


def test_an_item_that_does_not_exist_is_empty(table: Table) -> None:
    assert not table.get(KEY)
    assert table.get(KEY, consistent=False).text("owner", None) is None


def test_a_condition_refuses_a_change_and_shows_the_present_item(table: Table) -> None:
    assert table.write(put(KEY, {"revision": 1}).if_absent())
    refused = table.write(put(KEY, {"revision": 2}).if_absent(), shows_present=True)
    assert not refused
    assert refused.item.integer("revision") == 1
    assert not table.write(delete(KEY).only_if("revision = :seen", seen=2))
    assert table.write(delete(KEY).only_if("revision = :seen", seen=1))
    assert not table.get(KEY)


def test_a_refused_change_of_nothing_shows_nothing(table: Table) -> None:
    refused = table.write(update(KEY, "SET sent = :yes", yes=True).only_if("attribute_exists(pk)"), shows_present=True)
    assert (bool(refused), dict(refused.item)) == (False, {})


def test_a_change_returns_the_item_before_or_after_it(table: Table) -> None:
    table.write(put(KEY, {"count": 1}))
    assert table.write(put(KEY, {"count": 2}), returns="ALL_OLD").item.integer("count") == 1
    added = update(KEY, "SET #state = :state ADD #count :one REMOVE gone", state="open", one=1)
    item = table.write(added.only_if("#count = :seen", seen=2), returns="ALL_NEW").item
    assert (item.text("state"), item.integer("count")) == ("open", 3)


def test_another_error_is_raised(table: Table) -> None:
    broken = Table(table._client, "missing")
    with pytest.raises(ClientError, match="ResourceNotFound"):
        broken.write(put(KEY, {}).if_absent())
    with pytest.raises(ClientError, match="ResourceNotFound"):
        broken.transact([put(KEY, {}).if_absent()])


def test_a_transaction_is_made_as_a_whole_or_names_the_refused_changes(table: Table) -> None:
    changes = [put(KEY, {}).if_absent(), update(Key("b", "record"), "SET seen = :yes", yes=True)]
    assert table.transact(changes)
    refused = table.transact([put(Key("c", "record"), {}), changes[0]])
    assert (bool(refused), refused.failed) == (False, frozenset({1}))
    assert not table.get(Key("c", "record"))
    assert table.transact([delete(KEY), delete(Key("b", "record"))])
    assert not table.get(KEY)


class Canceling:
    """A client whose transactions are canceled for these reasons."""

    def __init__(self, *codes: str) -> None:
        self.codes = codes

    def transact_write_items(self, **_: object) -> None:
        answer: Any = {
            "Error": {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"},
            "CancellationReasons": [{"Code": code} for code in self.codes],
        }
        raise ClientError(answer, "TransactWriteItems")


@pytest.mark.parametrize(
    ("codes", "yields", "failed"),
    [
        (["None", "TransactionConflict"], True, set()),
        (["ConditionalCheckFailed", "TransactionConflict"], True, {0}),
        (["ConditionalCheckFailed", "ThrottlingError"], False, {0}),
    ],
)
def test_a_transaction_may_yield_to_another_write(codes: list[str], yields: bool, failed: set[int]) -> None:
    client: Any = Canceling(*codes)
    refused = Table(client, "tasks").transact([delete(KEY), delete(KEY)], yields=yields)
    assert (bool(refused), refused.failed) == (False, frozenset(failed))


@pytest.mark.parametrize(
    ("codes", "yields"),
    [(["TransactionConflict"], False), (["ThrottlingError", "ConditionalCheckFailed"], True), ([], True), ([], False)],
)
def test_a_transaction_that_fails_for_another_reason_is_an_error(codes: list[str], yields: bool) -> None:
    client: Any = Canceling(*codes)
    with pytest.raises(ClientError, match="TransactionCanceled"):
        Table(client, "tasks").transact([delete(KEY)], yields=yields)


def fill(table: Table, count: int) -> list[Change]:
    changes = [put(Key("a", f"hop#{number:03d}"), {"number": number}) for number in range(count)]
    assert not table.write_many(changes, pause=no_pause)
    return changes


def no_pause(seconds: float) -> None:
    raise AssertionError(f"a pause of {seconds} s")


def test_batches_of_any_size_are_written_read_and_deleted(table: Table) -> None:
    changes = fill(table, 120)
    keys = [change.key for change in changes]
    read = table.get_many(keys, ("pk", "sk", "number"), consistent=False, pause=no_pause)
    assert sorted(item.integer("number") for item in read) == list(range(120))
    assert not table.write_many(map(delete, keys), pause=no_pause)
    assert table.get_batch(keys[:100]) == ([], [])


def test_a_batch_has_neither_updates_nor_conditions(table: Table) -> None:
    for change in (update(KEY, "SET seen = :yes", yes=True), put(KEY, {}).if_absent()):
        with pytest.raises(ValueError, match="write this change alone"):
            table.write_many([change], pause=no_pause)


def test_a_query_reads_all_pages_in_both_directions(table: Table) -> None:
    fill(table, 30)
    query = where("pk = :id AND sk BETWEEN :first AND :last", id="a", first="hop#005", last="hop#020")
    assert [item.integer("number") for item in table.query(query)] == list(range(5, 21))
    newest = where("pk = :id AND begins_with(sk, :hop)", id="a", hop="hop#", backwards=True)
    page = table.page(newest, limit=2)
    assert ([item.integer("number") for item in page.items], page.has_more) == ([29, 28], True)
    assert not table.page(where("pk = :id AND sk < :end", id="a", end="hop#003")).has_more
    assert sum(table.counts(newest)) == 30


def test_a_query_reads_an_index(table: Table) -> None:
    table.write(put(KEY, {"due_in": "2026-01-01T00:00#0", "deadline_at": "2026-01-01T00:00:30Z"}))
    (item,) = table.query(where("due_in = :minute", minute="2026-01-01T00:00#0", index="due"))
    assert item.key == KEY


class Busy(MemoryDynamo):
    """Tables that leave out all but one item of each batch, or all of them."""

    leaves = 1

    def batch_get_item(self, *, RequestItems: Any) -> dict[str, Any]:  # noqa: N803
        request = RequestItems["tasks"]
        keys = request["Keys"]
        answer = (
            super().batch_get_item(RequestItems={"tasks": {**request, "Keys": keys[: self.leaves]}})
            if self.leaves
            else {}
        )
        left = {"tasks": {**request, "Keys": keys[self.leaves :]}} if keys[self.leaves :] else {}
        return {"Responses": answer.get("Responses", {}), "UnprocessedKeys": left}

    def batch_write_item(self, *, RequestItems: Any) -> dict[str, Any]:  # noqa: N803
        requests = RequestItems["tasks"]
        if self.leaves:
            super().batch_write_item(RequestItems={"tasks": requests[: self.leaves]})
        left = requests[self.leaves :]
        return {"UnprocessedItems": {"tasks": left} if left else {}}


def test_what_a_busy_table_leaves_out_is_tried_again_after_longer_pauses() -> None:
    client: Any = Busy({"tasks": new_table("tasks")})
    busy, pauses = Table(client, "tasks"), list[float]()
    changes = [put(Key(name, "record"), {}) for name in "abcd"]
    assert not busy.write_many(changes, pause=pauses.append)
    assert len(list(busy.get_many([change.key for change in changes], pause=pauses.append))) == 4
    assert pauses == [0.05, 0.1, 0.2] * 2
    assert not busy.write_many([delete(change.key) for change in changes], pause=pauses.append)
    assert not client.tables["tasks"].items


def test_what_a_busy_table_always_leaves_out_is_named() -> None:
    client: Any = Busy({"tasks": new_table("tasks")})
    client.leaves = 0
    busy, pauses = Table(client, "tasks"), list[float]()
    assert busy.write_many([put(KEY, {}), delete(Key("b", "record"))], pause=pauses.append) == {KEY, Key("b", "record")}
    with pytest.raises(ThrottledError, match="the table tasks throttles the reads"):
        list(busy.get_many([KEY], pause=pauses.append))
    assert len(pauses) == 10
    assert busy.get_batch([KEY]) == ([], [KEY])


def test_an_event_of_a_stream_is_an_item() -> None:
    assert Item({"pk": {"S": "a"}, "left": {"N": "2"}}).integer("left") == 2


def test_the_helper_imports_nothing_of_boto3() -> None:
    """boto3's converter and conditions would add 10 ms to each cold start."""
    code = "import sys; import asya.function.aws.table; print([n for n in sys.modules if n.startswith('boto3')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
