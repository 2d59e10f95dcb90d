"""The states of schedules in the tasks table: `pk` = `TRIGGERS`, `sk` = `schedule#{name}` (`protocol §16.due`)."""

from datetime import datetime
from typing import TYPE_CHECKING

from asya.capabilities.triggers.slots import ScheduleState
from asya.function.aws.table import Table, in_partition, put, update
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol.table_keys import PAUSED
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.task_store import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

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
        self._table = Table(client, table)

    def read_all(self) -> dict[str, ScheduleState]:
        """Read the states by the name of the trigger.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the states of schedules"):
            items = self._table.query(in_partition(PARTITION, _PREFIX))
            return {item.key.sk.removeprefix(_PREFIX): _state(item) for item in items}

    def write(self, trigger: str, state: ScheduleState, seen: ScheduleState | None) -> bool:
        """Replace the state that was seen; False if another process has changed it.

        Args:
            seen: the state that the new one follows; None if there was none.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        change = put(state_key(trigger), _attributes(state))
        if seen is None:
            change = change.if_absent()
        else:
            is_seen = "decided = :decided AND schedule = :schedule AND paused = :paused AND #off = :off"
            change = change.only_if(is_seen, **_attributes(seen))
        with table_errors("write the state of a schedule"):
            return bool(self._table.write(change))

    def pause(self, trigger: str, now: datetime) -> None:
        """Pause a trigger; one that is paused stays so.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        change = update(
            state_key(trigger),
            "SET paused = :yes, decided = if_not_exists(decided, :now), "
            "#off = if_not_exists(#off, :no), schedule = if_not_exists(schedule, :none)",
            yes=True,
            now=format_time(now),
            no=False,
            none="",
        )
        with table_errors("pause a trigger"):
            self._table.write(change)

    def resume(self, trigger: str, now: datetime) -> None:
        """Resume a paused trigger: its schedule begins now. One that is not paused does not change.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        change = update(state_key(trigger), "SET paused = :no, decided = :now", no=False, now=format_time(now))
        with table_errors("resume a trigger"):
            # A second call would leave out the slots since the first.
            self._table.write(change.only_if("paused = :yes", yes=True))


def state_key(trigger: str) -> Key:
    """The key of the item of a trigger."""
    return Key(PARTITION, f"{_PREFIX}{trigger}")


def _attributes(state: ScheduleState) -> dict[str, Value]:
    return {
        "decided": format_time(state.decided),
        "schedule": state.schedule,
        PAUSED: state.paused,
        "off": state.off,
    }


def _state(item: Item) -> ScheduleState:
    return ScheduleState(
        decided=parse_time(item.text("decided")),
        schedule=item.text("schedule"),
        paused=item.flag(PAUSED),
        off=item.flag("off"),
    )
