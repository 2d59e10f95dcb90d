"""Calls the tables of a mesh: reads, queries, changes with conditions, batches and transactions.

A change and a query are data; a `Table` carries them out. Expressions are those of DynamoDB: `:name` stands for the value
`name`, and `#name` for the attribute `name`, whose name DynamoDB reserves.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
from botocore.exceptions import ClientError

from asya.function.aws.table_items import Item, Key, Value, encoded, is_nothing

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

READ_BATCH = 100  # the limit of BatchGetItem
WRITE_BATCH = 25  # the limit of BatchWriteItem
TRIES = 5
FIRST_PAUSE = 0.05  # seconds; each further one is twice as long
_NAME = re.compile(r"#(\w+)")
_FAILED = "ConditionalCheckFailed"
# Of the parts of a transaction, if another write was faster, or is at work on an item.
_CONFLICTS = frozenset({"None", "TransactionConflict", _FAILED})


class ThrottledError(RuntimeError):
    """The table leaves out items of a batch, also after retries; try again later."""


class Change(msgspec.Struct, frozen=True):
    """One change of an item: a `put`, an `update` or a `delete`.

    Attributes:
        attributes: of a put, without the key.
        expression: of an update.
        condition: empty if the change is made in any case.
        values: what the placeholders of both expressions stand for.
    """

    kind: Literal["Put", "Update", "Delete"]
    key: Key
    attributes: Mapping[str, Value] = msgspec.field(default_factory=dict)
    expression: str = ""
    condition: str = ""
    values: Mapping[str, Value] = msgspec.field(default_factory=dict)

    def only_if(self, condition: str, /, **values: Value) -> "Change":
        """The change under a condition, whose values may also be those of the update."""
        return msgspec.structs.replace(self, condition=condition, values={**self.values, **values})

    def if_absent(self) -> "Change":
        """The change on the condition that the item does not exist."""
        return self.only_if("attribute_not_exists(pk)")

    @property
    def item(self) -> Item:
        """The item that a put writes."""
        return Item(self._item())

    def request(self, table: str) -> dict[str, Any]:
        """The arguments of the call, or of a part of a transaction."""
        whole = {"Item": self._item()} if self.kind == "Put" else {"Key": self.key.encoded()}
        expressions = {"UpdateExpression": self.expression, "ConditionExpression": self.condition}
        stated = {name: text for name, text in expressions.items() if text}
        return {"TableName": table, **whole, **stated, **_placeholders(" ".join(stated.values()), self.values)}

    def batch_request(self) -> dict[str, Any]:
        """The entry in a batch.

        Raises:
            ValueError: a batch has neither updates nor conditions.
        """
        if self.kind == "Update" or self.condition:
            raise ValueError("a batch takes only puts and deletions without a condition; write this change alone")
        if self.kind == "Put":
            return {"PutRequest": {"Item": self._item()}}
        return {"DeleteRequest": {"Key": self.key.encoded()}}

    def _item(self) -> dict[str, Any]:
        attributes = {name: encoded(value) for name, value in self.attributes.items() if not is_nothing(value)}
        return {**self.key.encoded(), **attributes}


def put(key: Key, attributes: Mapping[str, Value], /) -> Change:
    """Write a whole item; attributes that are None or an empty set are left out."""
    return Change("Put", key, attributes)


def update(key: Key, expression: str, /, **values: Value) -> Change:
    """Change attributes of an item, or create it with them."""
    return Change("Update", key, expression=expression, values=values)


def delete(key: Key, /) -> Change:
    """Delete an item, if it exists."""
    return Change("Delete", key)


class Query(msgspec.Struct, frozen=True):
    """The items of a partition, in the order of their sort keys; `where` makes it.

    Attributes:
        after: the keys of the item behind which the query begins; empty for its first one.
    """

    condition: str
    values: Mapping[str, Value]
    index: str = ""
    is_consistent: bool = True
    is_backwards: bool = False
    after: Mapping[str, str] = {}

    def behind(self, keys: Mapping[str, str]) -> "Query":
        """The same query behind an item, whether that one still exists or not.

        Args:
            keys: the keys of the item, in its table and in the index of the query.
        """
        return msgspec.structs.replace(self, after=keys)

    def request(self, table: str) -> dict[str, Any]:
        """The arguments of the call."""
        request: dict[str, Any] = {"TableName": table, "KeyConditionExpression": self.condition}
        if self.index:
            request["IndexName"] = self.index
        elif self.is_consistent:
            request["ConsistentRead"] = True
        if self.is_backwards:
            request["ScanIndexForward"] = False
        if self.after:
            request["ExclusiveStartKey"] = {name: encoded(value) for name, value in self.after.items()}
        return {**request, **_placeholders(self.condition, self.values)}


def where(
    condition: str, /, *, index: str = "", consistent: bool = True, backwards: bool = False, **values: Value
) -> Query:
    """Query the items whose keys meet a condition.

    Args:
        condition: the condition.
        index: the index that is read; its reads are never consistent.
        consistent: whether reads of the table are.
        backwards: whether the order is descending.
        values: what the placeholders stand for.
    """
    return Query(condition, values, index, consistent, backwards)


def in_partition(pk: str, prefix: str = "") -> Query:
    """Query the items of a partition whose sort keys begin with a prefix."""
    return where("pk = :pk AND begins_with(sk, :prefix)", pk=pk, prefix=prefix) if prefix else where("pk = :pk", pk=pk)


class Written(msgspec.Struct, frozen=True):
    """The result of a write: true if it was made, false if a condition refused it.

    Attributes:
        item: the item that the write was to return; empty without one.
        failed: the places of the refused changes in a transaction.
    """

    is_written: bool
    item: Item = msgspec.field(default_factory=Item)
    failed: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return self.is_written


class Page(NamedTuple):
    """A page of a query, and whether items may follow."""

    items: list[Item]
    has_more: bool


class Batch(NamedTuple):
    """The items that a batch has read, and the keys that a busy table left out."""

    items: list[Item]
    left_out: list[Key]


class Table:
    """One table of DynamoDB.

    Args:
        client: the client of DynamoDB.
        name: the name of the table.

    Raises:
        ClientError, BotoCoreError: from every method that calls it, if the table is unavailable or access is denied.
    """

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client: Any = client
        self.name = name

    def get(self, key: Key, *, consistent: bool = True) -> Item:
        """Read an item; an empty one if it does not exist."""
        consistency = {"ConsistentRead": True} if consistent else {}
        return Item(self._client.get_item(TableName=self.name, Key=key.encoded(), **consistency).get("Item"))

    def write(
        self, change: Change, *, returns: Literal["", "ALL_OLD", "ALL_NEW"] = "", shows_present: bool = False
    ) -> Written:
        """Make a change, if its condition holds.

        Args:
            change: the change.
            returns: the item that the result of a change has: the one before it, or the one after it.
            shows_present: whether the result of a refused change has the present item.
        """
        request = change.request(self.name)
        if returns:
            request["ReturnValues"] = returns
        if shows_present:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            answer = getattr(self._client, f"{change.kind.lower()}_item")(**request)
        except ClientError as error:
            response: Mapping[str, Any] = error.response
            if response["Error"]["Code"] != f"{_FAILED}Exception":
                raise
            return Written(False, Item(response.get("Item")))
        return Written(True, Item(answer.get("Attributes")))

    def transact(self, changes: Sequence[Change], *, yields: bool = False) -> Written:
        """Make all changes or none.

        Args:
            changes: changes of different items, at most 100.
            yields: whether another write that is at work on an item refuses them too; else that is an error.
        """
        try:
            self._client.transact_write_items(TransactItems=[{each.kind: each.request(self.name)} for each in changes])
        except ClientError as error:
            codes = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
            failed = frozenset(place for place, code in enumerate(codes) if code == _FAILED)
            is_refused = bool(codes) and _CONFLICTS.issuperset(codes) if yields else bool(failed)
            if not is_refused:
                raise
            return Written(False, failed=failed)
        return Written(True)

    def query(self, query: Query) -> Iterator[Item]:
        """The items of a query, page by page as they are consumed."""
        return chain.from_iterable(self.pages(query))

    def pages(self, query: Query) -> Iterator[list[Item]]:
        """The pages of a query, as they are consumed."""
        for page in self._paginate(query.request(self.name)):
            yield list(map(Item, page["Items"]))

    def page(self, query: Query, limit: int | None = None) -> Page:
        """The first page of a query, of at most `limit` items."""
        size = {} if limit is None else {"Limit": limit}
        answer = self._client.query(**query.request(self.name), **size)
        return Page(list(map(Item, answer["Items"])), "LastEvaluatedKey" in answer)

    def counts(self, query: Query) -> Iterator[int]:
        """The number of items on each page of a query."""
        return (page["Count"] for page in self._paginate({**query.request(self.name), "Select": "COUNT"}))

    def get_batch(self, keys: Iterable[Key], attributes: Sequence[str] = (), *, consistent: bool = True) -> Batch:
        """Read up to 100 items with one call, in any order.

        Args:
            keys: different keys.
            attributes: the attributes that are read; empty for all.
            consistent: whether the reads are.
        """
        request: dict[str, Any] = {"Keys": [key.encoded() for key in keys], "ConsistentRead": consistent}
        if attributes:
            names = {f"#{name}": name for name in attributes}
            request |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        answer = self._client.batch_get_item(RequestItems={self.name: request})
        left_out = answer.get("UnprocessedKeys", {}).get(self.name, {"Keys": []})["Keys"]
        return Batch(
            [Item(item) for item in answer["Responses"].get(self.name, [])], [Item(key).key for key in left_out]
        )

    def get_many(
        self,
        keys: Iterable[Key],
        attributes: Sequence[str] = (),
        *,
        consistent: bool = True,
        pause: Callable[[float], None],
    ) -> Iterator[Item]:
        """Read items in batches, and those again that a busy table leaves out.

        Args:
            keys: different keys.
            attributes: the attributes that are read; empty for all.
            consistent: whether the reads are.
            pause: sleeps for about so many seconds, with jitter, so throttled callers do not retry in lockstep.

        Raises:
            ThrottledError: the table leaves some out each time.
        """
        for left in chunks(list(keys), READ_BATCH):
            for seconds in _pauses(TRIES):
                items, left = self.get_batch(left, attributes, consistent=consistent)  # noqa: PLW2901
                yield from items
                if not left:
                    break
                pause(seconds)
            else:
                raise ThrottledError(f"the table {self.name} throttles the reads")

    def write_many(
        self, changes: Iterable[Change], *, pause: Callable[[float], None], tries: int = TRIES
    ) -> frozenset[Key]:
        """Make puts and deletions in batches, without conditions; returns the keys that a busy table left out each time.

        Args:
            changes: changes of different items.
            pause: sleeps for about so many seconds, with jitter.
            tries: the calls for one batch at most.
        """
        left_out: set[Key] = set()
        for requests in chunks([change.batch_request() for change in changes], WRITE_BATCH):
            for seconds in _pauses(tries):
                answer = self._client.batch_write_item(RequestItems={self.name: requests})
                requests = answer["UnprocessedItems"].get(self.name, [])  # noqa: PLW2901
                if not requests:
                    break
                pause(seconds)
            left_out.update(map(_key_of, requests))
        return frozenset(left_out)

    def _paginate(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return iter(self._client.get_paginator("query").paginate(**request))


def chunks(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """Split values into consecutive groups of at most `size`."""
    return (list(values[start : start + size]) for start in range(0, len(values), size))


def _key_of(request: Mapping[str, Any]) -> Key:
    return Item(request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]).key


def _placeholders(expressions: str, values: Mapping[str, Value]) -> dict[str, Any]:
    """What the placeholders stand for; DynamoDB refuses empty maps."""
    placeholders: dict[str, Any] = {}
    if names := _names(expressions):
        placeholders["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
    if values:
        placeholders["ExpressionAttributeValues"] = {f":{name}": encoded(value) for name, value in values.items()}
    return placeholders


@lru_cache(256)
def _names(expressions: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_NAME.findall(expressions)))


def _pauses(tries: int) -> Iterator[float]:
    return (FIRST_PAUSE * 2**attempt for attempt in range(tries))
