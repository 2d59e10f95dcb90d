"""Calls the tasks table: batch writes with retries, and the conversion of errors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from asya.tasks.aws.task_store import TaskStoreError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Item = dict[str, AttributeValueTypeDef]

# The limit of the service's batch call.
WRITE_BATCH = 25
# Unprocessed items of a batch are retried with exponential backoff.
MAX_ATTEMPTS = 5
FIRST_DELAY = 0.05  # seconds

T = TypeVar("T")


@contextmanager
def table_errors(doing: str) -> Iterator[None]:
    """Convert AWS errors into `TaskStoreError`.

    Args:
        doing: the operation, as in "read task a".
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise TaskStoreError(f"cannot {doing}: {error}") from error


def read_items(client: "DynamoDBClient", table: str, partition: str, prefix: str) -> "Iterator[Item]":
    """Read the items of a partition whose sort keys begin with a prefix, by consistent reads, page by page.

    Args:
        client: the client of DynamoDB.
        table: the name of the table.
        partition: the partition key.
        prefix: the beginning of the sort keys.

    Raises:
        ClientError, BotoCoreError: the table is unavailable.
    """
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
        ExpressionAttributeValues={":pk": {"S": partition}, ":prefix": {"S": prefix}},
        ConsistentRead=True,
    )
    for page in pages:
        yield from page["Items"]


def write_items(
    client: "DynamoDBClient", table: str, items: "Sequence[Item]", sleep: Callable[[float], None]
) -> frozenset[str]:
    """Put items in batches, unconditionally; returns the partition keys of items that stay unprocessed.

    Args:
        client: the client of DynamoDB.
        table: the name of the table.
        items: the items, each with a different key.
        sleep: waits for seconds, with jitter, so that throttled callers do not retry in lockstep.

    Raises:
        TaskStoreError: the table is unavailable.
    """
    unprocessed: set[str] = set()
    for batch in chunks(items, WRITE_BATCH):
        unprocessed |= _write(client, table, batch, sleep)
    return frozenset(unprocessed)


def backoff_delays() -> Iterator[float]:
    """Seconds to wait after each attempt."""
    return (FIRST_DELAY * 2**attempt for attempt in range(MAX_ATTEMPTS))


def chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Split items into consecutive groups of at most `size`."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def _write(client: "DynamoDBClient", table: str, items: "Sequence[Item]", sleep: Callable[[float], None]) -> set[str]:
    for delay in backoff_delays():
        with table_errors("write to the table of tasks"):
            answer = client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}} for item in items]})
        unprocessed = answer["UnprocessedItems"].get(table, [])
        if not unprocessed:
            return set()
        items = [request["PutRequest"]["Item"] for request in unprocessed]
        sleep(delay)
    return {item["pk"]["S"] for item in items}
