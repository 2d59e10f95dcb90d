"""The tables in memory behind the calls of DynamoDB's client, a hundred times as fast as moto.

Tests of the functions use them. Tests of what talks to a table, below `aws/`, keep moto's, as do those of the sidecar's
and the crew's own tables; simulation shares these.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from threading import RLock
from typing import Any, TypeVar, cast

import pytest

from asya.function.aws import clients
from asya.testing.dynamo.tables import Index, MemoryDynamo, Table, copied

Call = TypeVar("Call", bound=Callable[..., Any])


def _one_at_a_time(call: Call) -> Call:
    """The call under the lock of its tables, because the gateway calls from several threads."""

    @wraps(call)
    def locked(tables: "MemoryTables", **request: Any) -> Any:
        with tables.lock:
            return call(tables, **request)

    return cast("Call", locked)


class MemoryTables(MemoryDynamo):
    """DynamoDB with the calls of an owner beside those of the mesh."""

    def __init__(self) -> None:
        super().__init__({})
        self.lock = RLock()

    def create_table(
        self,
        *,
        TableName: str,  # noqa: N803
        GlobalSecondaryIndexes: Sequence[Mapping[str, Any]] = (),  # noqa: N803
        **_: Any,
    ) -> None:
        """Create an empty table; its keys are `pk` and `sk`."""
        assert TableName not in self.tables
        self.tables[TableName] = Table({index["IndexName"]: _index(index) for index in GlobalSecondaryIndexes})

    def delete_table(self, *, TableName: str) -> None:  # noqa: N803
        """Delete a table."""
        del self.tables[TableName]

    def scan(self, *, TableName: str) -> dict[str, Any]:  # noqa: N803
        """Return all items."""
        items = [copied(item) for item in self._table(TableName).items.values()]
        return {"Items": items, "Count": len(items)}

    get_item = _one_at_a_time(MemoryDynamo.get_item)
    put_item = _one_at_a_time(MemoryDynamo.put_item)
    update_item = _one_at_a_time(MemoryDynamo.update_item)
    delete_item = _one_at_a_time(MemoryDynamo.delete_item)
    batch_get_item = _one_at_a_time(MemoryDynamo.batch_get_item)
    batch_write_item = _one_at_a_time(MemoryDynamo.batch_write_item)
    transact_write_items = _one_at_a_time(MemoryDynamo.transact_write_items)
    query = _one_at_a_time(MemoryDynamo.query)


def _index(index: Mapping[str, Any]) -> Index:
    partition, sort = (key["AttributeName"] for key in index["KeySchema"])
    return Index(partition, sort, tuple(index["Projection"].get("NonKeyAttributes", ())))


@contextmanager
def memory_tables() -> Iterator[None]:
    """Make `clients.dynamodb` a client of tables in memory, none yet."""
    with pytest.MonkeyPatch.context() as patch:
        tables = MemoryTables()
        client = cache(lambda: tables)  # with a `cache_clear`, which loses nothing here
        patch.setattr(clients, "dynamodb", client)
        yield
