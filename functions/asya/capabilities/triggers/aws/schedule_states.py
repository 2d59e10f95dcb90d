"""The states of schedules in the tasks table: `pk` = `TRIGGERS`, `sk` = `schedule#{name}` (`protocol §16.due`)."""

from datetime import datetime
from typing import TYPE_CHECKING

from asya.capabilities.triggers.schedule_state import ScheduleState
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.table_calls import read_items, table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

PARTITION = "TRIGGERS"
# Keeps the items apart from a task whose sender chose `TRIGGERS` as its id.
_PREFIX = "schedule#"


class ScheduleStates:
    """The states of the schedules of a mesh. All lie in one partition, which a sweep reads with one query.

    Args:
        client: the client of DynamoDB.
        table: the name of the tasks table.
    """

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def read_all(self) -> dict[str, ScheduleState]:
        """Read the states by the name of the trigger.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the states of schedules"):
            items = read_items(self._client, self._table, PARTITION, _PREFIX)
            return {item["sk"]["S"].removeprefix(_PREFIX): _state(item) for item in items}

    def write(self, trigger: str, state: ScheduleState, seen: ScheduleState | None) -> bool:
        """Replace the state that was seen; False if another process has changed it.

        Args:
            seen: the state that the new one follows; None if there was none.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        item = state_key(trigger) | _attributes(state)
        with table_errors("write the state of a schedule"):
            try:
                if seen is None:
                    self._client.put_item(
                        TableName=self._table, Item=item, ConditionExpression="attribute_not_exists(pk)"
                    )
                else:
                    self._client.put_item(
                        TableName=self._table,
                        Item=item,
                        ConditionExpression="decided = :decided AND schedule = :schedule AND paused = :paused AND #off = :off",
                        ExpressionAttributeNames={"#off": "off"},
                        ExpressionAttributeValues={f":{name}": value for name, value in _attributes(seen).items()},
                    )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def pause(self, trigger: str, now: datetime) -> None:
        """Pause a trigger; one that is paused stays so.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("pause a trigger"):
            self._client.update_item(
                TableName=self._table,
                Key=state_key(trigger),
                UpdateExpression="SET paused = :yes, decided = if_not_exists(decided, :now), "
                "#off = if_not_exists(#off, :no), schedule = if_not_exists(schedule, :none)",
                ExpressionAttributeNames={"#off": "off"},
                ExpressionAttributeValues={
                    ":yes": {"BOOL": True},
                    ":now": {"S": format_time(now)},
                    ":no": {"BOOL": False},
                    ":none": {"S": ""},
                },
            )

    def resume(self, trigger: str, now: datetime) -> None:
        """Resume a paused trigger: its schedule begins now. One that is not paused does not change.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("resume a trigger"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=state_key(trigger),
                    UpdateExpression="SET paused = :no, decided = :now",
                    # A second call would leave out the slots since the first.
                    ConditionExpression="paused = :yes",
                    ExpressionAttributeValues={
                        ":yes": {"BOOL": True},
                        ":no": {"BOOL": False},
                        ":now": {"S": format_time(now)},
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return


def state_key(trigger: str) -> "dict[str, AttributeValueTypeDef]":
    """The key of the item of a trigger."""
    return {"pk": {"S": PARTITION}, "sk": {"S": f"{_PREFIX}{trigger}"}}


def _attributes(state: ScheduleState) -> "dict[str, AttributeValueTypeDef]":
    return {
        "decided": {"S": format_time(state.decided)},
        "schedule": {"S": state.schedule},
        "paused": {"BOOL": state.paused},
        "off": {"BOOL": state.off},
    }


def _state(item: "Item") -> ScheduleState:
    return ScheduleState(
        decided=parse_time(item["decided"]["S"]),
        schedule=item["schedule"]["S"],
        paused=item["paused"]["BOOL"],
        off=item["off"]["BOOL"],
    )
