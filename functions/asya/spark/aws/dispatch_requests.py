"""Requests that the dispatcher look after an actor: never lost, and seldom more than one on its way (`protocol §10`).

The flag (`REQUEST#{actor}` / `request`) says that a request is on its way. It is set after sending and cleared before the
dispatcher reads what is pending, so that whoever sees it set knows: the read is still to come. `clears` closes the gap
between sending and setting: if the flag was cleared since it was looked at, that may have been for the request just sent, and
the flag stays down, which only costs a request too many.

A request carries the `clears` that it was sent at, its *turn*. So it shows on arrival whether the flag that is up stands for
another one: then the flag stays up, nothing is sent in its stead, and requests too many die out instead of going round.
"""

import json
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure
from asya.messaging.sqs_limits import DELAY_SECONDS
from asya.protocol import names

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef
    from mypy_boto3_sqs import SQSClient

# A request that has not been taken up so long after it was due is taken for lost.
LOST_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class DispatchRequest:
    """That the dispatcher look after an actor.

    Attributes:
        turn: how often the actor's flag had been cleared when it was sent; None if no flag was to stand for it.
    """

    actor: str
    turn: int | None = None


class DispatchRequests:
    """The flags of all heavy actors of a mesh, and the dispatcher's queue."""

    def __init__(self, dynamodb: "DynamoDBClient", sqs: "SQSClient", *, table: str, queue_url: str) -> None:
        self._dynamodb = dynamodb
        self._sqs = sqs
        self._table = table
        self._queue_url = queue_url

    def ensure(self, actor: str, delay: float, *, now: datetime, for_capacity: bool = False) -> bool:
        """Make sure that a request is on its way.

        Args:
            delay: seconds until it should be taken up, 900 at most; rounded up.
            for_capacity: it waits for EMR Serverless to have room; `expedite` may come before it.

        Returns:
            Whether one had to be sent.
        """
        flag = self._flag(actor)
        if _is_up(flag, now):
            return False
        seconds = min(math.ceil(delay), DELAY_SECONDS)
        self._send(DispatchRequest(actor, _clears(flag)), seconds)
        self._raise_flag(actor, flag, until=now + timedelta(seconds=seconds) + LOST_AFTER, for_capacity=for_capacity)
        return True

    def expedite(self, actor: str, *, now: datetime) -> None:
        """There may be room now: if a request waits for that, send another at once."""
        flag = self._flag(actor)
        if _is_up(flag, now) and "for_capacity" in flag:
            self._send(DispatchRequest(actor), 0)

    def is_requested(self, actor: str, *, now: datetime) -> bool:
        """Whether a request is on its way."""
        return _is_up(self._flag(actor), now)

    def accept(self, request: DispatchRequest, *, now: datetime) -> bool:
        """A request has arrived, and what is pending will be read after this: take the flag down that stands for it.

        Returns:
            Whether the flag is down. If not, another request is on its way, which reads later still.
        """
        flag = self._flag(request.actor)
        if _is_up(flag, now) and _clears(flag) != request.turn:
            return False
        self.clear(request.actor)
        return True

    def clear(self, actor: str) -> None:
        """Take the flag down, whatever request it stands for."""
        self._dynamodb.update_item(
            TableName=self._table,
            Key=_key(actor),
            UpdateExpression="ADD clears :one REMOVE raised_until, for_capacity",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    def _flag(self, actor: str) -> "dict[str, AttributeValueTypeDef]":
        return self._dynamodb.get_item(TableName=self._table, Key=_key(actor), ConsistentRead=True).get("Item", {})

    def _send(self, request: DispatchRequest, seconds: int) -> None:
        self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=encode_request(request), DelaySeconds=seconds)

    def _raise_flag(
        self, actor: str, seen: "dict[str, AttributeValueTypeDef]", *, until: datetime, for_capacity: bool
    ) -> None:
        values: dict[str, AttributeValueTypeDef] = {":until": {"N": f"{until.timestamp():.3f}"}}
        condition = "attribute_not_exists(clears)"
        if "clears" in seen:
            condition, values[":clears"] = "clears = :clears", seen["clears"]
        changes = "SET raised_until = :until REMOVE for_capacity"
        if for_capacity:
            changes, values[":yes"] = "SET raised_until = :until, for_capacity = :yes", {"BOOL": True}
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=_key(actor),
                UpdateExpression=changes,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise


def encode_request(request: DispatchRequest) -> str:
    """The message that asks for a look at an actor."""
    return json.dumps({"actor": request.actor, **({} if request.turn is None else {"turn": request.turn})})


def decode_request(body: bytes) -> DispatchRequest:
    """What a message asks for.

    Raises:
        ValueError: if it is no such message.
    """
    content = json.loads(body)
    actor = content.get("actor") if isinstance(content, dict) else None
    turn = content.get("turn") if isinstance(content, dict) else None
    if not isinstance(actor, str) or not isinstance(turn, int | None):
        raise ValueError("a dispatch request is an object with the name of an actor, and perhaps its turn")
    return DispatchRequest(names.check_label(actor, "actor"), turn)


def _key(actor: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": f"REQUEST#{actor}"}, "sk": {"S": "request"}}


def _is_up(flag: "dict[str, AttributeValueTypeDef]", now: datetime) -> bool:
    return "raised_until" in flag and float(flag["raised_until"]["N"]) > now.timestamp()


def _clears(flag: "dict[str, AttributeValueTypeDef]") -> int:
    return int(flag["clears"]["N"]) if "clears" in flag else 0
