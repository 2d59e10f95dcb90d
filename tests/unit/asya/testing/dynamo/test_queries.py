"""The items of a table in memory, by partition."""

from hypothesis import given
from hypothesis import strategies as st

from asya.testing.dynamo.queries import Items
from asya.testing.dynamo.values import Item

KEYS = st.tuples(st.sampled_from("ab"), st.sampled_from("12"))
PARTITIONS = ({"S": "7"}, {"N": "7"}, {"B": b"7"})
WRITES = st.lists(st.tuples(KEYS, st.none() | st.sampled_from([{}, *({"due_in": value} for value in PARTITIONS)])))


@given(WRITES)
def test_a_partition_has_its_items_after_any_writes(writes: list[tuple[tuple[str, str], Item | None]]) -> None:
    items = Items({"pk", "due_in"})
    for key, attributes in writes:
        if attributes is None:
            items.pop(key, None)
        else:
            items[key] = {"pk": {"S": key[0]}, "sk": {"S": key[1]}, **attributes}
    for attribute, values in (("pk", ({"S": "a"}, {"S": "b"})), ("due_in", PARTITIONS)):
        for value in values:
            expected = [item for item in items.values() if item.get(attribute) == value]
            found = list(items.of_partition(attribute, value))
            assert sorted(map(str, found)) == sorted(map(str, expected))
