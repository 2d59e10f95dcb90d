"""Tables in memory with the indexes of a deployment, and the items of a query: by partition, in order."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from zlib import crc32

from asya import registry, stores
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.testing.dynamo.values import ExpressionError, Item, Key, Value, check_key_condition, item_key, kind_of, plain

T = TypeVar("T")
# The attribute, the operator and the operands of each part of a key condition.
KeyConditions = list[tuple[str, str, list[Value]]]


@dataclass(frozen=True)
class Index:
    """A global secondary index: its keys and its further projected attributes."""

    partition: str
    sort: str | None = None
    included: tuple[str, ...] = ()


class Items(MutableMapping[Key, dict[str, Value]]):
    """The items of a table by their keys, and by each attribute that a partition key is.

    A sweep asks hundreds of partitions, most of them empty, so no query goes through the whole table.
    """

    def __init__(self, partition_attributes: Iterable[str]) -> None:
        self._items: dict[Key, dict[str, Value]] = {}
        self._partitions: dict[str, dict[Hashable, dict[Key, Item]]] = {name: {} for name in partition_attributes}

    def __getitem__(self, key: Key) -> dict[str, Value]:
        return self._items[key]

    def __setitem__(self, key: Key, item: dict[str, Value]) -> None:
        self._leave_partitions(key)
        self._items[key] = item
        for attribute, partitions in self._partitions.items():
            if attribute in item:
                partitions.setdefault(_hashable(item[attribute]), {})[key] = item

    def __delitem__(self, key: Key) -> None:
        self._leave_partitions(key)
        del self._items[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def of_partition(self, attribute: str, value: Value) -> Iterable[Item]:
        """The items whose attribute has this value."""
        return self._partitions[attribute].get(_hashable(value), {}).values()

    def _leave_partitions(self, key: Key) -> None:
        before = self._items.get(key, {})
        for attribute, partitions in self._partitions.items():
            if attribute in before:
                del partitions[_hashable(before[attribute])][key]


@dataclass
class Table:
    """A table with the string keys `pk` and `sk`, and with indexes by name."""

    indexes: Mapping[str, Index] = field(default_factory=dict)
    items: Items = field(init=False)

    def __post_init__(self) -> None:
        self.items = Items({"pk", *(index.partition for index in self.indexes.values())})


@dataclass
class Paginator:
    """Requests one page after another."""

    query: Callable[..., dict[str, Any]]

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        """Yield the pages."""
        while True:
            answer = self.query(**request)
            yield answer
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def query_page(
    table: Table, index_name: str | None, conditions: KeyConditions, *, forward: bool, after: Item | None, size: int
) -> tuple[list[Item], bool]:
    """Return a page of a partition, in the order of the sort keys and as the index projects it, and whether items follow.

    Args:
        forward: whether the order is ascending.
        after: the key of the last item of the previous page; None for the first page.
    """
    index = _index(table, index_name)
    check_key_condition(conditions, index.partition, index.sort)
    items = sorted(
        (item for item in _of_partition(table, index, conditions) if _is_in(item, conditions)),
        key=lambda item: (_sort_value(item, index.sort), *_order_of_equals(item, index_name), item["sk"]["S"]),
        reverse=not forward,
    )
    if after is not None:
        last = item_key(after)
        places = [place for place, item in enumerate(items) if item_key(item) == last]
        if places:
            items = items[places[0] + 1 :]
        elif index_name is None:  # the item was deleted; the page starts after its key
            items = [item for item in items if (item_key(item) > last) == forward]
    return [_projected(item, index, whole=index_name is None) for item in items[:size]], len(items) > size


def copied(value: T) -> T:
    """Return a deep copy."""
    copy: Any = value
    if isinstance(value, dict):
        copy = {name: one if isinstance(one, str) else copied(one) for name, one in value.items()}
    elif isinstance(value, list):
        copy = [copied(one) for one in value]
    elif isinstance(value, set):
        copy = set(value)
    return cast("T", copy)


def _projected(item: Item, index: Index, *, whole: bool) -> Item:
    """Return the attributes of an item that the index projects."""
    projection = {"pk", "sk", index.partition, index.sort, *index.included}
    return copied({name: value for name, value in item.items() if whole or name in projection})


def _index(table: Table, index: str | None) -> Index:
    if index is None:
        return Index("pk", "sk")
    if index not in table.indexes:
        raise ExpressionError(f"The table does not have the specified index: {index}")
    return table.indexes[index]


def _of_partition(table: Table, index: Index, conditions: KeyConditions) -> Iterable[Item]:
    """Return the items of the partition in a key condition."""
    value = next(operands[0] for name, sign, operands in conditions if (name, sign) == (index.partition, "="))
    return table.items.of_partition(index.partition, value)


def _hashable(value: Value) -> Hashable:
    kind = kind_of(value)
    return kind, value[kind]


def _order_of_equals(item: Item, index: str | None) -> tuple[int, str]:
    """The order of items with the same sort key: an index promises none, least of all that of the table's keys."""
    key: str = item["pk"]["S"]
    return crc32(key.encode()) if index is not None else 0, key


def _is_in(item: Item, conditions: KeyConditions) -> bool:
    return all(_fits(item.get(name), sign, operands) for name, sign, operands in conditions)


def _fits(value: Value | None, sign: str, operands: list[Value]) -> bool:  # noqa: PLR0911 - one for each sign
    if value is None or any(kind_of(one) != kind_of(value) for one in operands):
        return False
    left, right = plain(value), [plain(operand) for operand in operands]
    match sign:
        case "=":
            return bool(left == right[0])
        case "<":
            return bool(left < right[0])
        case "<=":
            return bool(left <= right[0])
        case ">":
            return bool(left > right[0])
        case ">=":
            return bool(left >= right[0])
        case "BETWEEN":
            return bool(right[0] <= left <= right[1])
        case _:
            return bool(left.startswith(right[0]))


def _sort_value(item: Item, sort: str | None) -> Any:
    return plain(item[sort]) if sort is not None and sort in item else ""


def new_tables(mesh: MeshTable) -> dict[str, Table]:
    """The empty tables of a mesh, by their names in AWS."""
    declared = registry.of(mesh).tables.values()
    return {names.table_name(mesh.namespace, each.name): _new(each) for each in declared}


def new_table(name: str) -> Table:
    """One empty table that every mesh has."""
    return _new(registry.PRODUCT.tables[name])


def _new(table: stores.Table) -> Table:
    return Table({index.name: Index(index.partition, index.sort, index.included) for index in table.indexes})
