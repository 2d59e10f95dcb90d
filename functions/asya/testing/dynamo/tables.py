"""DynamoDB in memory: the calls that the mesh makes, as strict as AWS; an unknown argument is an error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from asya.testing.dynamo.expressions import Request
from asya.testing.dynamo.queries import Index, Paginator, Table, copied, query_page
from asya.testing.dynamo.values import (
    ExpressionError,
    Item,
    Key,
    Value,
    check_batch_size,
    check_distinct,
    check_item,
    item_key,
)

__all__ = ("ConditionalCheckFailedException", "Index", "MemoryDynamo", "Paginator", "Table", "copied")

_STATUS = 400


class ConditionalCheckFailedException(ClientError):  # noqa: N818 - AWS calls it so
    """The condition of a write does not hold."""


class Exceptions:
    """The `exceptions` of a client."""

    ConditionalCheckFailedException = ConditionalCheckFailedException


@dataclass
class MemoryDynamo:
    """A DynamoDB client over tables in memory.

    Attributes:
        tables: the tables by name.
        page_size: the number of items on a page of a query.
        on_write: called after each write with the table, the item before and the item after; None for no item.
    """

    tables: dict[str, Table]
    page_size: int = 1000
    on_write: Callable[[str, Item | None, Item | None], None] | None = None

    exceptions = Exceptions

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = False) -> dict[str, Any]:  # noqa: N803
        """Return an item."""
        item = self._table(TableName).items.get(item_key(Key, exact=True))
        return {"Item": copied(item)} if item is not None else {}

    def put_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Item: Item,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Value] | None = None,  # noqa: N803
        ReturnValues: str = "NONE",  # noqa: N803
        ReturnValuesOnConditionCheckFailure: str = "NONE",  # noqa: N803
    ) -> dict[str, Any]:
        """Replace an item; return the item before, if that is wanted."""
        with _Validated("PutItem"):
            before = self._table(TableName).items.get(item_key(Item)) if ReturnValues == "ALL_OLD" else None
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            change = self._put(TableName, Item, ConditionExpression, request)
            request.check_all_used()
            self._write_if_held([change], ReturnValuesOnConditionCheckFailure, "PutItem")
        return {"Attributes": copied(before)} if before is not None else {}

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
        """Update or create an item."""
        with _Validated("UpdateItem"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            change = self._update(TableName, Key, UpdateExpression, ConditionExpression, request)
            request.check_all_used()
            before = copied(change.before)
            self._write_if_held([change], ReturnValuesOnConditionCheckFailure, "UpdateItem")
            match ReturnValues:
                case "NONE":
                    return {}
                case "ALL_NEW":
                    return {"Attributes": copied(change.after)}
                case "ALL_OLD":
                    return {"Attributes": before} if before is not None else {}
            raise ExpressionError(f"the memory tables do not support ReturnValues {ReturnValues}")

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
        """Delete an item, or do nothing if it does not exist."""
        with _Validated("DeleteItem"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            change = self._delete(TableName, Key, ConditionExpression, request)
            request.check_all_used()
            self._write_if_held([change], ReturnValuesOnConditionCheckFailure, "DeleteItem")
        return {}

    def batch_get_item(self, *, RequestItems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Return up to 100 items."""
        with _Validated("BatchGetItem"):
            check_batch_size([len(content["Keys"]) for content in RequestItems.values()], 100)
            responses: dict[str, list[Item]] = {}
            for name, content in RequestItems.items():
                unknown = set(content) - {"Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"}
                if unknown:
                    raise ExpressionError(f"the memory tables do not support {sorted(unknown)}")
                shown = _projected(content)
                keys = [item_key(key, exact=True) for key in content["Keys"]]
                check_distinct(keys)
                items = self._table(name).items
                responses[name] = [shown(copied(items[key])) for key in keys if key in items]
        return {"Responses": responses, "UnprocessedKeys": {}}

    def batch_write_item(self, *, RequestItems: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:  # noqa: N803
        """Write or delete up to 25 items, without conditions."""
        with _Validated("BatchWriteItem"):
            check_batch_size([len(requests) for requests in RequestItems.values()], 25)
            changes: list[_Change] = []
            for name, requests in RequestItems.items():
                for request in requests:
                    ((kind, content),) = request.items()
                    if kind == "PutRequest":
                        changes.append(self._put(name, content["Item"], None, Request()))
                    elif kind == "DeleteRequest":
                        changes.append(self._delete(name, content["Key"], None, Request()))
                    else:
                        raise ExpressionError(f"the memory tables do not support {kind}")
            check_distinct([(change.table, change.key) for change in changes])
            self._write_if_held(changes, "NONE", "BatchWriteItem")
        return {"UnprocessedItems": {}}

    def transact_write_items(
        self,
        *,
        TransactItems: Sequence[Mapping[str, Mapping[str, Any]]],  # noqa: N803
        ClientRequestToken: str = "",  # noqa: N803
    ) -> dict[str, Any]:
        """Write all items of a transaction, or none."""
        with _Validated("TransactWriteItems"):
            check_batch_size([len(TransactItems)], 100)
            changes = [self._transaction_change(*next(iter(part.items()))) for part in TransactItems]
            check_distinct([(change.table, change.key) for change in changes])
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
        """Return one page of a partition, ordered by sort key."""
        with _Validated("Query"):
            request = Request(ExpressionAttributeNames or {}, ExpressionAttributeValues or {})
            conditions = request.key_condition(KeyConditionExpression)
            request.check_all_used()
            table = self._table(TableName)
            if IndexName is not None and ConsistentRead:
                raise ExpressionError("Consistent reads are not supported on global secondary indexes")
            page, has_more = query_page(
                table,
                IndexName,
                conditions,
                forward=ScanIndexForward,
                after=ExclusiveStartKey,
                size=min(Limit or self.page_size, self.page_size),
            )
            answer: dict[str, Any] = {"Items": page, "Count": len(page)}
            if Select == "COUNT":
                del answer["Items"]
            if has_more:
                answer["LastEvaluatedKey"] = {name: page[-1][name] for name in ("pk", "sk")}
        return answer

    def get_paginator(self, action: str) -> "Paginator":
        """Return the paginator of a query."""
        if action != "query":
            raise NotImplementedError(f"no paginator for {action}")
        return Paginator(self.query)

    def _transaction_change(self, kind: str, content: Mapping[str, Any]) -> "_Change":
        """Prepare one item of a transaction."""
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
                raise ExpressionError(f"the memory tables do not support {kind}")
        request.check_all_used()
        return change

    def _put(self, table: str, item: Item, condition: str | None, request: Request) -> "_Change":
        check_item(item)
        after = dict(copied(item))
        return self._change(table, item_key(item), condition, request, lambda _: after)

    def _update(self, table: str, key: Item, expression: str, condition: str | None, request: Request) -> "_Change":
        update = request.update(expression)
        for path in update.paths:
            if path[0] in ("pk", "sk"):
                raise ExpressionError(f"Cannot update attribute {path[0]}. This attribute is part of the key")

        def changed(before: Item | None) -> dict[str, Value]:
            after = update.applied(before if before is not None else copied(key))
            check_item(after)
            return after

        return self._change(table, item_key(key, exact=True), condition, request, changed)

    def _delete(self, table: str, key: Item, condition: str | None, request: Request) -> "_Change":
        return self._change(table, item_key(key, exact=True), condition, request, lambda _: None)

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

    def _write_if_held(self, changes: "list[_Change]", on_failure: str, action: str) -> None:
        for change in changes:
            if not change.holds():
                answer: Any = _answer("ConditionalCheckFailedException", "The conditional request failed")
                if on_failure == "ALL_OLD" and change.before is not None:
                    answer["Item"] = copied(change.before)
                raise ConditionalCheckFailedException(answer, action)
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
            if self.on_write is not None and change.after is not change.before:
                self.on_write(change.table, change.before, change.after)

    def _table(self, name: str) -> Table:
        if name not in self.tables:
            raise ClientError(
                _answer("ResourceNotFoundException", f"Requested resource not found: Table: {name} not found"),
                "DynamoDB",
            )
        return self.tables[name]


@dataclass
class _Change:
    table: str
    key: Key
    before: Item | None
    compute: "Callable[[Item | None], Item | None]"
    holds: Callable[[], bool]
    after: dict[str, Value] | None = None


def _projected(content: Mapping[str, Any]) -> Callable[[Item], Item]:
    """Return what a projection leaves of an item; a projection names top-level attributes."""
    if "ProjectionExpression" not in content:
        return lambda item: item
    names = content.get("ExpressionAttributeNames", {})
    shown = [names.get(part.strip(), part.strip()) for part in content["ProjectionExpression"].split(",")]
    if unused := set(names.values()) - set(shown):
        raise ExpressionError(f"the expression does not use {sorted(unused)}")
    return lambda item: {name: item[name] for name in shown if name in item}


class _Validated:
    """Converts the error of an invalid request into AWS's error."""

    def __init__(self, action: str) -> None:
        self._action = action

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ExpressionError):
            raise ClientError(_answer("ValidationException", str(error)), self._action) from error


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
