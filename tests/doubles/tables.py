"""DynamoDB in memory: the calls that the mesh makes, with AWS's own strictness; what is not known is an error."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from botocore.exceptions import ClientError

from tests.doubles.expressions import ExpressionError, Item, Request, Value, kind_of, plain

ITEM_LIMIT = 400 * 1024
Key = tuple[Any, Any]
T = TypeVar("T")
_STATUS = 400


class ConditionalCheckFailedException(ClientError):  # noqa: N818 - AWS calls it so
    """What a conditional write is answered with whose condition does not hold."""


class Exceptions:
    """As a client's `exceptions`."""

    ConditionalCheckFailedException = ConditionalCheckFailedException


@dataclass(frozen=True)
class Index:
    """A global secondary index: its keys, and what it shows beside all keys."""

    partition: str
    sort: str | None = None
    included: tuple[str, ...] = ()


@dataclass
class Table:
    """Keys `pk` and `sk`, both texts, as all tables of the mesh have, and indexes by name."""

    indexes: Mapping[str, Index] = field(default_factory=dict)
    items: dict[Key, dict[str, Value]] = field(default_factory=dict)


@dataclass
class MemoryDynamo:
    """A DynamoDB client over tables in memory.

    Attributes:
        tables: by name.
        page_size: items that a page of a query holds.
        watch: is told of every item that was written: table, before, after (None: it is gone).
    """

    tables: dict[str, Table]
    page_size: int = 1000
    watch: Callable[[str, Item | None, Item | None], None] | None = None

    exceptions = Exceptions

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = False) -> dict[str, Any]:  # noqa: N803
        """One item."""
        found = self._table(TableName).items.get(_key(Key, exact=True))
        return {"Item": copied(found)} if found is not None else {}

    def put_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Item: Item,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Value] | None = None,  # noqa: N803
        ReturnValuesOnConditionCheckFailure: str = "NONE",  # noqa: N803
    ) -> dict[str, Any]:
        """Write an item whole."""
        with _Validated("PutItem"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            change = self._put(TableName, Item, ConditionExpression, request)
            request.check_all_used()
            self._carry_out([change], ReturnValuesOnConditionCheckFailure, "PutItem")
        return {}

    def update_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        UpdateExpression: str,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Value] | None = None,  # noqa: N803
        ReturnValues: str = "NONE",  # noqa: N803
        ReturnValuesOnConditionCheckFailure: str = "NONE",  # noqa: N803
    ) -> dict[str, Any]:
        """Change an item, or make it."""
        with _Validated("UpdateItem"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            change = self._update(TableName, Key, UpdateExpression, ConditionExpression, request)
            request.check_all_used()
            before = copied(change.before)
            self._carry_out([change], ReturnValuesOnConditionCheckFailure, "UpdateItem")
            match ReturnValues:
                case "NONE":
                    return {}
                case "ALL_NEW":
                    return {"Attributes": copied(change.after)}
                case "ALL_OLD":
                    return {"Attributes": before} if before is not None else {}
            raise ExpressionError(f"ReturnValues {ReturnValues} is not known here")

    def delete_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Value] | None = None,  # noqa: N803
        ReturnValuesOnConditionCheckFailure: str = "NONE",  # noqa: N803
    ) -> dict[str, Any]:
        """Remove an item; none is fine too."""
        with _Validated("DeleteItem"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            change = self._delete(TableName, Key, ConditionExpression, request)
            request.check_all_used()
            self._carry_out([change], ReturnValuesOnConditionCheckFailure, "DeleteItem")
        return {}

    def batch_get_item(self, *, RequestItems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Up to 100 items."""
        with _Validated("BatchGetItem"):
            _check_batch([len(asked["Keys"]) for asked in RequestItems.values()], 100)
            responses: dict[str, list[Item]] = {}
            for name, asked in RequestItems.items():
                unknown = set(asked) - {"Keys", "ConsistentRead"}
                if unknown:
                    raise ExpressionError(f"{unknown} is not known here")
                keys = [_key(key, exact=True) for key in asked["Keys"]]
                _check_distinct(keys)
                items = self._table(name).items
                responses[name] = [copied(items[key]) for key in keys if key in items]
        return {"Responses": responses, "UnprocessedKeys": {}}

    def batch_write_item(self, *, RequestItems: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:  # noqa: N803
        """Up to 25 items written or removed, without conditions."""
        with _Validated("BatchWriteItem"):
            _check_batch([len(asked) for asked in RequestItems.values()], 25)
            changes: list[_Change] = []
            for name, asked in RequestItems.items():
                for one in asked:
                    ((what, content),) = one.items()
                    if what == "PutRequest":
                        changes.append(self._put(name, content["Item"], None, Request()))
                    elif what == "DeleteRequest":
                        changes.append(self._delete(name, content["Key"], None, Request()))
                    else:
                        raise ExpressionError(f"{what} is not known here")
            _check_distinct([(change.table, change.key) for change in changes])
            self._carry_out(changes, "NONE", "BatchWriteItem")
        return {"UnprocessedItems": {}}

    def transact_write_items(
        self,
        *,
        TransactItems: Sequence[Mapping[str, Mapping[str, Any]]],  # noqa: N803
        ClientRequestToken: str = "",  # noqa: N803
    ) -> dict[str, Any]:
        """All of it or nothing."""
        with _Validated("TransactWriteItems"):
            _check_batch([len(TransactItems)], 100)
            changes = [self._part(*next(iter(part.items()))) for part in TransactItems]
            _check_distinct([(change.table, change.key) for change in changes])
            failed = [not change.holds() for change in changes]
            if any(failed):
                raise _canceled(changes, failed, TransactItems)
            self._write(changes)
        return {}

    def query(
        self,
        *,
        TableName: str,  # noqa: N803
        KeyConditionExpression: str,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Value] | None = None,  # noqa: N803
        IndexName: str | None = None,  # noqa: N803
        ScanIndexForward: bool = True,  # noqa: N803
        ConsistentRead: bool = False,  # noqa: N803
        Limit: int | None = None,  # noqa: N803
        ExclusiveStartKey: Item | None = None,  # noqa: N803
        Select: str = "ALL_ATTRIBUTES",  # noqa: N803
    ) -> dict[str, Any]:
        """One page of a partition, in the order of its sort keys."""
        with _Validated("Query"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            conditions = request.key_condition(KeyConditionExpression)
            request.check_all_used()
            table = self._table(TableName)
            if IndexName is not None and ConsistentRead:
                raise ExpressionError("Consistent reads are not supported on global secondary indexes")
            index = _index(table, IndexName)
            _check_key_condition(conditions, index.partition, index.sort)
            found = sorted(
                (item for item in _of_partition(table, index, conditions) if _is_in(item, conditions)),
                key=lambda item: (_sort_value(item, index.sort), item["pk"]["S"], item["sk"]["S"]),
                reverse=not ScanIndexForward,
            )
            if ExclusiveStartKey is not None:
                last = _key(ExclusiveStartKey)
                places = [place for place, item in enumerate(found) if _key(item) == last]
                if places:
                    found = found[places[0] + 1 :]
                elif IndexName is None:  # deleted since: the page begins where it was
                    found = [item for item in found if (_key(item) > last) == ScanIndexForward]
            size = min(Limit or self.page_size, self.page_size)
            page = found[:size]
            answer: dict[str, Any] = {
                "Items": [_projected(item, index, whole=IndexName is None) for item in page],
                "Count": len(page),
            }
            if Select == "COUNT":
                del answer["Items"]
            if len(found) > size:
                answer["LastEvaluatedKey"] = {name: page[-1][name] for name in ("pk", "sk")}
        return answer

    def get_paginator(self, operation: str) -> "Paginator":
        """Pages of a query."""
        if operation != "query":
            raise NotImplementedError(f"no paginator for {operation}")
        return Paginator(self.query)

    def _part(self, kind: str, content: Mapping[str, Any]) -> "_Change":
        """One part of a transaction."""
        request = Request(content.get("ExpressionAttributeNames", {}), content.get("ExpressionAttributeValues", {}))
        table, condition = content["TableName"], content.get("ConditionExpression")
        match kind:
            case "Put":
                change = self._put(table, content["Item"], condition, request)
            case "Update":
                change = self._update(table, content["Key"], content["UpdateExpression"], condition, request)
            case "Delete":
                change = self._delete(table, content["Key"], condition, request)
            case "ConditionCheck":
                change = self._delete(table, content["Key"], condition, request)
                change.compute = lambda before: before
            case _:
                raise ExpressionError(f"{kind} is not known here")
        request.check_all_used()
        return change

    def _put(self, table: str, item: Item, condition: str | None, request: Request) -> "_Change":
        _check_item(item)
        after = dict(copied(item))
        return self._change(table, _key(item), condition, request, lambda _: after)

    def _update(self, table: str, key: Item, expression: str, condition: str | None, request: Request) -> "_Change":
        update = request.update(expression)
        for path in update.paths:
            if path[0] in ("pk", "sk"):
                raise ExpressionError(f"Cannot update attribute {path[0]}. This attribute is part of the key")

        def changed(before: Item | None) -> dict[str, Value]:
            after = update.applied(before if before is not None else copied(key))
            _check_item(after)
            return after

        return self._change(table, _key(key, exact=True), condition, request, changed)

    def _delete(self, table: str, key: Item, condition: str | None, request: Request) -> "_Change":
        return self._change(table, _key(key, exact=True), condition, request, lambda _: None)

    def _change(
        self,
        table: str,
        key: Key,
        condition: str | None,
        request: Request,
        compute: "Callable[[Item | None], dict[str, Value] | None]",
    ) -> "_Change":
        before = self._table(table).items.get(key)
        test = request.condition(condition) if condition is not None else None
        return _Change(table, key, before, compute, lambda: test is None or test(before or {}))

    def _carry_out(self, changes: "list[_Change]", on_failure: str, operation: str) -> None:
        for change in changes:
            if not change.holds():
                answer: Any = _answer("ConditionalCheckFailedException", "The conditional request failed")
                if on_failure == "ALL_OLD" and change.before is not None:
                    answer["Item"] = copied(change.before)
                raise ConditionalCheckFailedException(answer, operation)
        self._write(changes)

    def _write(self, changes: "list[_Change]") -> None:
        for change in changes:
            change.after = change.compute(change.before)  # type: ignore[assignment]
        for change in changes:
            items = self._table(change.table).items
            if change.after is None:
                items.pop(change.key, None)
            else:
                items[change.key] = change.after
            if self.watch is not None and change.after is not change.before:
                self.watch(change.table, change.before, change.after)

    def _table(self, name: str) -> Table:
        if name not in self.tables:
            raise ClientError(
                _answer("ResourceNotFoundException", f"Requested resource not found: Table: {name} not found"),
                "DynamoDB",
            )
        return self.tables[name]


@dataclass
class Paginator:
    """Asks for page after page."""

    query: Callable[..., dict[str, Any]]

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        """The pages."""
        while True:
            answer = self.query(**request)
            yield answer
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


@dataclass
class _Change:
    table: str
    key: Key
    before: Item | None
    compute: "Callable[[Item | None], Item | None]"
    holds: Callable[[], bool]
    after: dict[str, Value] | None = None


class _Validated:
    """Turns what is wrong with a request into AWS's answer."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ExpressionError):
            raise ClientError(_answer("ValidationException", str(error)), self._operation) from error


def _answer(code: str, message: str) -> Any:
    return {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": _STATUS}}


def _canceled(changes: list[_Change], failed: list[bool], parts: Sequence[Mapping[str, Any]]) -> ClientError:
    reasons: list[dict[str, Any]] = []
    for change, is_failed, part in zip(changes, failed, parts, strict=True):
        reason: dict[str, Any] = {"Code": "ConditionalCheckFailed" if is_failed else "None"}
        content = next(iter(part.values()))
        if is_failed and content.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and change.before is not None:
            reason["Item"] = copied(change.before)
        reasons.append(reason)
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return ClientError(
        _answer("TransactionCanceledException", message) | {"CancellationReasons": reasons}, "TransactWriteItems"
    )


def _key(item: Item, *, exact: bool = False) -> Key:
    found = []
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
        found.append(value["S"])
    if exact and set(item) != {"pk", "sk"}:
        raise ExpressionError("The provided key element does not match the schema")
    return found[0], found[1]


def _check_item(item: Item) -> None:
    for value in item.values():
        plain(value)
        if kind_of(value) in ("NS", "SS", "BS") and not value[kind_of(value)]:
            raise ExpressionError("One or more parameter values were invalid: An number set  may not be empty")
    if sum(len(name.encode()) + _bytes_of(value) for name, value in item.items()) > ITEM_LIMIT:
        raise ExpressionError("Item size has exceeded the maximum allowed size")


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


def _check_batch(sizes: list[int], limit: int) -> None:
    if not 1 <= sum(sizes) <= limit:
        raise ExpressionError(f"1 validation error detected: {sum(sizes)} items; 1 to {limit} are possible")


def _check_distinct(keys: Sequence[Any]) -> None:
    if len(set(keys)) < len(keys):
        raise ExpressionError("Provided list of item keys contains duplicates")


def copied(value: T) -> T:
    """A copy that shares nothing that could be changed."""
    if isinstance(value, dict):
        return cast("T", {name: copied(one) for name, one in value.items()})
    if isinstance(value, list):
        return cast("T", [copied(one) for one in value])
    return cast("T", set(value)) if isinstance(value, set) else value


def _projected(item: Item, index: Index, *, whole: bool) -> Item:
    """What a query shows of an item."""
    shown = {"pk", "sk", index.partition, index.sort, *index.included}
    return copied({name: value for name, value in item.items() if whole or name in shown})


def _index(table: Table, index: str | None) -> Index:
    if index is None:
        return Index("pk", "sk")
    if index not in table.indexes:
        raise ExpressionError(f"The table does not have the specified index: {index}")
    return table.indexes[index]


def _check_key_condition(conditions: list[tuple[str, str, list[Value]]], partition: str, sort: str | None) -> None:
    names = [name for name, _, _ in conditions]
    if names.count(partition) != 1 or (partition, "=") not in [(name, sign) for name, sign, _ in conditions]:
        raise ExpressionError("Query condition missed key schema element")
    if len(names) > 2 or any(name not in (partition, sort) for name in names):
        raise ExpressionError("Query key condition not supported")


def _of_partition(table: Table, index: Index, conditions: list[tuple[str, str, list[Value]]]) -> Iterator[Item]:
    """The items that can fulfil a key condition, told by their partition key alone."""
    wanted = next(operands[0] for name, sign, operands in conditions if (name, sign) == (index.partition, "="))
    return (item for item in table.items.values() if item.get(index.partition) == wanted)


def _is_in(item: Item, conditions: list[tuple[str, str, list[Value]]]) -> bool:
    return all(_fits(item.get(name), sign, operands) for name, sign, operands in conditions)


def _fits(value: Value | None, sign: str, operands: list[Value]) -> bool:
    if value is None or any(kind_of(one) != kind_of(value) for one in operands):
        return False
    found, wanted = plain(value), [plain(one) for one in operands]
    match sign:
        case "=":
            return bool(found == wanted[0])
        case "<":
            return bool(found < wanted[0])
        case "<=":
            return bool(found <= wanted[0])
        case ">":
            return bool(found > wanted[0])
        case ">=":
            return bool(found >= wanted[0])
        case "BETWEEN":
            return bool(wanted[0] <= found <= wanted[1])
        case _:
            return bool(found.startswith(wanted[0]))


def _sort_value(item: Item, sort: str | None) -> Any:
    return plain(item[sort]) if sort is not None and sort in item else ""
