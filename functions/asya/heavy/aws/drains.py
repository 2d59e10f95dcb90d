"""Drains: an operator holds the new runs of a heavy actor back (`protocol §10`).

The item `DRAIN#{actor}` / `drain` of the pending table exists while the actor is drained. Only operators write it, with their
own credentials; the dispatcher and the reconciler read it.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, delete, put
from asya.function.aws.table_items import Key
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Drain:
    """Why an actor forms no runs.

    Attributes:
        since: RFC 3339.
        by: the ARN of the operator; empty if unknown.
        reason: the operator's words; may be empty.
    """

    since: str
    by: str = ""
    reason: str = ""


class Drains:
    """The drained actors of a mesh."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._table = Table(dynamodb, table)

    def get(self, actor: str) -> Drain | None:
        """The drain of an actor; None if its runs are formed as usual."""
        item = self._table.get(_key(actor))
        return Drain(*(item.text(name, "") for name in ("since", "by", "reason"))) if item else None

    def start(self, actor: str, *, now: datetime, by: str = "", reason: str = "") -> Drain:
        """Drains an actor; a drain that goes on stands and is returned.

        A dispatcher that has read the table before may still form one run.
        """
        drain = Drain(format_time(now), by, reason)
        is_new = self._table.write(put(_key(actor), asdict(drain)).if_absent())
        return drain if is_new else self.get(actor) or drain

    def end(self, actor: str) -> None:
        """Ends a drain; the caller runs the reconciler afterwards, because no request may be on its way."""
        self._table.write(delete(_key(actor)))


def _key(actor: str) -> Key:
    return Key(f"DRAIN#{actor}", "drain")
