"""DynamoDB's and the SDK's errors in the words of the port."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from asya.aws.task_store import TaskStoreError


@contextmanager
def table_errors(doing: str) -> Iterator[None]:
    """Turn trouble with a table into `TaskStoreError`, saying what could not be done."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise TaskStoreError(f"cannot {doing}: {error}") from error
