"""Drains: an operator holds the new runs of a heavy actor back (`protocol §10`).

The item `DRAIN#{actor}` / `drain` of the pending table exists while the actor is drained. Only operators write it, with their
own credentials; the dispatcher and the reconciler read it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


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
        self._dynamodb = dynamodb
        self._table = table

    def get(self, actor: str) -> Drain | None:
        """The drain of an actor; None if its runs are formed as usual."""
        item = self._dynamodb.get_item(TableName=self._table, Key=_key(actor), ConsistentRead=True).get("Item")
        if item is None:
            return None
        since, by, reason = (item[name]["S"] if name in item else "" for name in ("since", "by", "reason"))
        return Drain(since, by, reason)

    def start(self, actor: str, *, now: datetime, by: str = "", reason: str = "") -> Drain:
        """Drains an actor; a drain that goes on stands and is returned.

        A dispatcher that has read the table before may still form one run.
        """
        drain = Drain(format_time(now), by, reason)
        item: dict[str, AttributeValueTypeDef] = {**_key(actor), "since": {"S": drain.since}, "by": {"S": by}}
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item={**item, "reason": {"S": reason}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return self.get(actor) or drain
        return drain

    def end(self, actor: str) -> None:
        """Ends a drain; the caller runs the reconciler afterwards, because no request may be on its way."""
        self._dynamodb.delete_item(TableName=self._table, Key=_key(actor))


def _key(actor: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": f"DRAIN#{actor}"}, "sk": {"S": "drain"}}
