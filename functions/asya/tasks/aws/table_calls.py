"""Converts the errors of calls to the tasks table."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.table import ThrottledError
from asya.tasks.aws.task_store import TaskStoreError


@contextmanager
def table_errors(doing: str) -> Iterator[None]:
    """Convert AWS errors into `TaskStoreError`.

    Args:
        doing: what the call does, as in "read task a".
    """
    try:
        yield
    except (ClientError, BotoCoreError, ThrottledError) as error:
        raise TaskStoreError(f"cannot {doing}: {error}") from error
