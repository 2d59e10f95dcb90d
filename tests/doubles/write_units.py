"""Counts the write units of a DynamoDB client by partition key, as DynamoDB charges them."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.dynamo.values import Item, Value, kind_of

_UNIT = 1024
_NUMBER_OVERHEAD = 1
_COLLECTION_OVERHEAD = 3


@dataclass
class WriteUnits:
    """A client that counts what its PutItem and UpdateItem cost; every other call passes through.

    A write costs a unit for each started KiB of the larger of the item before and after it.

    Attributes:
        by_key: write units by partition key.
        writes: calls by sort key up to its first `#`.
    """

    tables: MemoryDynamo
    by_key: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All write units."""
        return self.by_key.total()

    def put_item(self, **request: Any) -> dict[str, Any]:
        """See `MemoryDynamo`."""
        return self._counted("put_item", request["TableName"], request["Item"], request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        """See `MemoryDynamo`."""
        return self._counted("update_item", request["TableName"], request["Key"], request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tables, name)

    def _counted(self, call: str, table: str, item: Item, request: dict[str, Any]) -> dict[str, Any]:
        key = item["pk"]["S"], item["sk"]["S"]
        items = self.tables.tables[table].items
        before = item_size(items.get(key, {}))
        try:
            answer: dict[str, Any] = getattr(self.tables, call)(**request)
        finally:
            # A write whose condition fails costs what the item costs that is there.
            self.by_key[key[0]] += max(1, ceil(max(before, item_size(items.get(key, {}))) / _UNIT))
            self.writes[key[1].partition("#")[0]] += 1
        return answer


def item_size(item: Item) -> int:
    """The size of an item in bytes: names and values."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Value) -> int:
    kind = kind_of(value)
    content = value[kind]
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            return _number_size(content)
        case "NS":
            return _COLLECTION_OVERHEAD + sum(1 + _number_size(one) for one in content)
    return 1


def _number_size(text: str) -> int:
    """A byte for two significant digits, and one more."""
    return ceil(len(text.strip("-").replace(".", "").strip("0") or "0") / 2) + _NUMBER_OVERHEAD
