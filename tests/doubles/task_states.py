"""The states of tasks as their records say, for pre-flights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from botocore.exceptions import ClientError, ReadTimeoutError

from asya.tasks.task_state import TaskState
from asya.testing.dynamo.tables import MemoryDynamo

TABLE = "asya-shop-tasks"
_LATER = "4102444800"  # 2100

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "on demand"}}, "BatchGetItem")
SILENT = ReadTimeoutError(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com")


class PutsItems(Protocol):
    """A client of DynamoDB."""

    def put_item(self, *, TableName: str, Item: Mapping[str, Any]) -> Any:  # noqa: N803
        """Replace an item."""


class TaskStates:
    """Writes records that have no more than a state."""

    def __init__(self, client: PutsItems) -> None:
        self._client = client

    def __setitem__(self, task_id: str, state: TaskState) -> None:
        """Write the record of a task; that of its root has its own."""
        assert (state.id, state.root_status) == (task_id, None)
        item = {
            "pk": {"S": task_id},
            "sk": {"S": "record"},
            "status": {"S": state.status},
            "generation": {"N": str(state.generation)},
            "expires_at": {"N": _LATER},
        }
        if state.pause_epoch is not None:
            item["pause_epoch"] = {"N": str(state.pause_epoch)}
        self._client.put_item(TableName=TABLE, Item=item)


@dataclass
class StateReads:
    """The client of pre-flights over tables in memory.

    Attributes:
        asked: the ids of the tasks that each call asked for.
        error: what each call raises; None for an answer.
        watch: called before each answer.
    """

    tables: MemoryDynamo
    asked: list[list[str]] = field(default_factory=list)
    error: Exception | None = None
    watch: Callable[[], object] = lambda: None

    def batch_get_item(self, *, RequestItems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Return items, or fail."""
        self.asked += [[key["pk"]["S"] for key in content["Keys"]] for content in RequestItems.values()]
        self.watch()
        if self.error is not None:
            raise self.error
        return self.tables.batch_get_item(RequestItems=RequestItems)
