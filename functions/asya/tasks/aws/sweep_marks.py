"""Stores the progress of sweeps, and how long ends wait in `x-ends` (`protocol §13`, backstop).

Progress of sweeps: `pk` = `SWEEP`, `sk` = `due`, or `lost`. How long ends wait: `pk` = `SWEEP`, `sk` = `ends-fresh`
or `ends-late`, `at` = the time of the last such message.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.index import EPOCH, DueKey, ListKey
from asya.tasks.aws.task_store import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MarkKind = Literal["fresh", "late"]


class EndsMarks:
    """The marks of one mesh."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def read(self, kind: MarkKind) -> datetime | None:
        """Read a mark; None before the first one.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the age of ends"):
            item = self._table.get(_ends_key(kind))
        return parse_time(item.text("at")) if item else None

    def write(self, kind: MarkKind, at: datetime) -> None:
        """Store a mark.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("store the age of ends"):
            self._table.write(put(_ends_key(kind), {"at": format_time(at)}))


def _ends_key(kind: MarkKind) -> Key:
    return Key("SWEEP", f"ends-{kind}")


class SweepMark(NamedTuple):
    """How far the deadline sweep has come.

    Attributes:
        until: the first minute that is not done.
        stopped_at: the task at which the time of the last sweep was over; None if it finished its minute.
        entered: the time before which all open tasks are entered into lists (`asya.tasks.aws.lasting`); the mark of a version
            that entered none has `EPOCH`.
    """

    until: datetime
    stopped_at: DueKey | None = None
    entered: datetime = EPOCH


# Not the names of the keys, which would put the mark itself into the index.
_STOPPED_AT = ("stopped_in", "stopped_at", "stopped_task")


class SweepMarks:
    """The mark of one mesh. Concurrent sweeps may set it back; then a sweep processes a minute twice."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def read(self) -> SweepMark | None:
        """Read the mark; None before the first sweep.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the progress of the deadline sweep"):
            item = self._table.get(_key())
        if not item:
            return None
        stopped_at = DueKey(*(item.text(name, "") for name in _STOPPED_AT))
        entered = parse_time(item.text("entered")) if "entered" in item else EPOCH
        return SweepMark(parse_time(item.text("until")), stopped_at if stopped_at.due_in else None, entered)

    def write(self, mark: SweepMark) -> None:
        """Store the mark.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        stopped_at = dict(zip(_STOPPED_AT, mark.stopped_at, strict=True)) if mark.stopped_at is not None else {}
        with table_errors("store the progress of the deadline sweep"):
            times = {"until": format_time(mark.until), "entered": format_time(mark.entered)}
            self._table.write(put(_key(), {**times, **stopped_at}))


class LostMarks:
    """How far the sweep of lost tasks has come in its round through the open tasks, newest first."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def read(self) -> ListKey | None:
        """The last task of the sweep before; None at the beginning of a round.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the progress of the sweep of lost tasks"):
            item = self._table.get(_key("lost"))
        return ListKey(item.text("listed_at"), item.text("task")) if item.text("listed_at", "") else None

    def write(self, key: ListKey | None) -> None:
        """Store the last task of a sweep.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        listed_at, task_id = key or ("", "")
        with table_errors("store the progress of the sweep of lost tasks"):
            self._table.write(put(_key("lost"), {"listed_at": listed_at, "task": task_id}))


def _key(name: str = "due") -> Key:
    return Key("SWEEP", name)
