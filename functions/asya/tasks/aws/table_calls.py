"""Writing many items without any condition, 25 to a call, and asking again for what a call leaves undone."""

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
# What a batch leaves undone is asked for again this often, first after this many seconds, then after twice as many.
ROUNDS = 5
FIRST_PAUSE = 0.05

T = TypeVar("T")


@contextmanager
def table_errors(doing: str) -> Iterator[None]:
    """Turn trouble with a table into `TaskStoreError`, saying what could not be done."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise TaskStoreError(f"cannot {doing}: {error}") from error


def write_items(
    client: "DynamoDBClient", table: str, items: "Sequence[Item]", pause: Callable[[float], None]
) -> frozenset[str]:
    """Put items, no two of the same key; gives the partition keys of what the table would not take even after a few rounds.

    Raises:
        TaskStoreError: if the table cannot be reached.
    """
    undone: set[str] = set()
    for some in chunks(items, WRITE_BATCH):
        undone |= _write(client, table, some, pause)
    return frozenset(undone)


def pauses() -> Iterator[float]:
    """Seconds to wait before each next round."""
    return (FIRST_PAUSE * 2**turn for turn in range(ROUNDS))


def chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Consecutive groups of at most so many."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def _write(client: "DynamoDBClient", table: str, items: "Sequence[Item]", pause: Callable[[float], None]) -> set[str]:
    for seconds in pauses():
        with table_errors("write to the table of tasks"):
            answer = client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}} for item in items]})
        unprocessed = answer["UnprocessedItems"].get(table, [])
        if not unprocessed:
            return set()
        items = [request["PutRequest"]["Item"] for request in unprocessed]
        pause(seconds)
    return {item["pk"]["S"] for item in items}
