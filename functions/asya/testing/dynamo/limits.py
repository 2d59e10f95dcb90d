"""DynamoDB's limits on keys, items and batches; a violation is an error, as on AWS."""

from collections.abc import Mapping, Sequence
from typing import Any

from asya.testing.dynamo.values import ExpressionError, Item, Value, kind_of, plain

ITEM_LIMIT = 400 * 1024
Key = tuple[Any, Any]


def item_key(item: Item, *, exact: bool = False) -> Key:
    """Return the key of an item; `exact` allows no other attributes."""
    parts = []
    for name in ("pk", "sk"):
        value = item.get(name)
        if value is None or kind_of(value) != "S":
            raise ExpressionError(f"One or more parameter values were invalid: Missing the key {name} in the item")
        if not value["S"]:
            raise ExpressionError(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
                f"empty string value. Key: {name}"
            )
        if len(value["S"].encode()) > {"pk": 2048, "sk": 1024}[name]:
            raise ExpressionError(f"Size of {name} has exceeded the maximum size limit")
        parts.append(value["S"])
    if exact and set(item) != {"pk", "sk"}:
        raise ExpressionError("The provided key element does not match the schema")
    return parts[0], parts[1]


def check_item(item: Item) -> None:
    """Check the values and the size of an item."""
    for value in item.values():
        plain(value)
        if kind_of(value) in ("NS", "SS", "BS") and not value[kind_of(value)]:
            raise ExpressionError("One or more parameter values were invalid: An number set  may not be empty")
    if item_bytes(item) > ITEM_LIMIT:
        raise ExpressionError("Item size has exceeded the maximum allowed size")


def item_bytes(item: Item) -> int:
    """The size of an item as DynamoDB counts it."""
    return sum(len(name.encode()) + _bytes_of(value) for name, value in item.items())


def _bytes_of(value: Value) -> int:
    content = value[kind_of(value)]
    if isinstance(content, str):
        return len(content.encode())
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, Mapping):
        return 3 + sum(len(name.encode()) + 1 + _bytes_of(one) for name, one in content.items())
    if isinstance(content, list):
        return 3 + sum(1 + (_bytes_of(one) if isinstance(one, Mapping) else len(one)) for one in content)
    return 1


def check_batch_size(sizes: list[int], limit: int) -> None:
    """Check the number of items in a batch."""
    if not 1 <= sum(sizes) <= limit:
        raise ExpressionError(f"1 validation error detected: {sum(sizes)} items; 1 to {limit} are possible")


def check_distinct(keys: Sequence[Any]) -> None:
    """Check that no key occurs twice."""
    if len(set(keys)) < len(keys):
        raise ExpressionError("Provided list of item keys contains duplicates")


def check_key_condition(conditions: list[tuple[str, str, list[Value]]], partition: str, sort: str | None) -> None:
    """Check that a key condition fixes the partition key and limits only the sort key."""
    names = [name for name, _, _ in conditions]
    if names.count(partition) != 1 or (partition, "=") not in [(name, sign) for name, sign, _ in conditions]:
        raise ExpressionError("Query condition missed key schema element")
    if len(names) > 2 or any(name not in (partition, sort) for name in names):
        raise ExpressionError("Query key condition not supported")
