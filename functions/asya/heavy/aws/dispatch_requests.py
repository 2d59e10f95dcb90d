"""Dispatch requests: each pending envelope has one on its way, and an actor seldom has two (`protocol §10`).

The flag (`REQUEST#{actor}` / `request`) stands for a request on its way. The sender sets it after sending. The dispatcher
clears it before it reads the pending envelopes, so a set flag means that the read is still to come. `clears` counts the
clears. If it grew between reading and setting, the request may have arrived already, and the flag stays clear. The cost is
one surplus request.

`arrived` counts the envelopes that became pending since the last clear. Each time that it completes a batch, a surplus request
leaves at once, so that a full batch does not wait for its window. The count may be wrong after a crash; then a batch waits
for its window, or the dispatcher finds that it is not full and leaves it.

A request carries the `clears` at which it was sent, its *turn*. A request with another turn is surplus: it leaves the flag
set and sends no successor, so surplus requests do not multiply.
"""

import json
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.function.aws.outbox import send_error
from asya.function.aws.table import Table, update
from asya.function.aws.table_items import Item, Key, Value
from asya.function.sqs import DELAY_SECONDS
from asya.protocol import names
from asya.protocol.mesh_table import Batch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

# A request that has not arrived so long after it was due counts as lost.
LOST_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class DispatchRequest:
    """A request to form and start the runs of an actor.

    Attributes:
        turn: the `clears` of the actor's flag at sending; None if no flag stands for the request.
    """

    actor: str
    turn: int | None = None


class DispatchRequests:
    """The flags of all heavy actors of a mesh, and the dispatcher's queue."""

    def __init__(self, dynamodb: "DynamoDBClient", sqs: "SQSClient", *, table: str, queue_url: str) -> None:
        self._table = Table(dynamodb, table)
        self._sqs = sqs
        self._queue_url = queue_url

    def ensure(
        self, actor: str, delay: float, *, now: datetime, for_capacity: bool = False, pending: int | None = None
    ) -> bool:
        """Ensures that a request is on its way.

        Args:
            delay: seconds until it is due, 900 at most; rounded up.
            for_capacity: it waits for capacity of EMR Serverless; `expedite` may send another one earlier.
            pending: the number of envelopes that the dispatcher leaves until their window ends.

        Returns:
            Whether a request was sent.
        """
        return self._ensure(actor, self._flag(actor), delay, now=now, for_capacity=for_capacity, pending=pending)

    def arrive(self, actor: str, count: int, batch: Batch, *, now: datetime, at_once: bool = False) -> None:
        """Counts envelopes that became pending, and ensures a request: after the window, or at once for a full batch.

        Args:
            at_once: whether a request leaves at once in any case, because a resident run may be idle.
        """
        if not batch.window:
            self.ensure(actor, 0, now=now)
            return
        flag = self._table.write(update(_key(actor), "ADD arrived :count", count=count), returns="ALL_NEW").item
        arrived = flag.integer("arrived")
        is_due = at_once or arrived // batch.size > (arrived - count) // batch.size
        if not self._ensure(actor, flag, 0 if is_due else batch.window, now=now) and is_due:
            self._send(DispatchRequest(actor), 0)

    def _ensure(
        self,
        actor: str,
        flag: Item,
        delay: float,
        *,
        now: datetime,
        for_capacity: bool = False,
        pending: int | None = None,
    ) -> bool:
        if _is_set(flag, now):
            return False
        seconds = min(math.ceil(delay), DELAY_SECONDS)
        self._send(DispatchRequest(actor, _clears(flag)), seconds)
        until = now + timedelta(seconds=seconds) + LOST_AFTER
        self._set_flag(actor, flag, until=until, for_capacity=for_capacity, pending=pending)
        return True

    def expedite(self, actor: str, *, now: datetime) -> None:
        """Sends a request at once if one waits for capacity."""
        flag = self._flag(actor)
        if _is_set(flag, now) and "for_capacity" in flag:
            self._send(DispatchRequest(actor), 0)

    def hasten(self, actor: str, *, now: datetime) -> None:
        """Sends a request at once, also if one is on its way."""
        flag = self._flag(actor)
        if not self._ensure(actor, flag, 0, now=now):
            self._send(DispatchRequest(actor), 0)

    def is_requested(self, actor: str, *, now: datetime) -> bool:
        """Whether a request is on its way."""
        return _is_set(self._flag(actor), now)

    def had_request(self, actor: str) -> bool:
        """Whether a request was ever sent, so that the actor is a heavy one that got an envelope."""
        return bool(self._flag(actor))

    def accept(self, request: DispatchRequest, *, now: datetime) -> bool:
        """Clears the flag of an arrived request; call it before the pending envelopes are read.

        Returns:
            Whether the flag is clear. If it is not, another request is on its way, and its read comes later.
        """
        flag = self._flag(request.actor)
        if _is_set(flag, now) and _clears(flag) != request.turn:
            return False
        self.clear(request.actor)
        return True

    def clear(self, actor: str) -> None:
        """Clears the flag, whichever request it stands for."""
        self._table.write(update(_key(actor), "ADD clears :one REMOVE raised_until, for_capacity, arrived", one=1))

    def _flag(self, actor: str) -> Item:
        return self._table.get(_key(actor))

    def _send(self, request: DispatchRequest, seconds: int) -> None:
        """Sends a request.

        Raises:
            SendError: SQS does not accept it.
        """
        try:
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=encode_request(request), DelaySeconds=seconds)
        except ClientError as error:
            raise send_error(names.DISPATCH, self._queue_url, error) from error

    def _set_flag(
        self,
        actor: str,
        flag: Item,
        *,
        until: datetime,
        for_capacity: bool,
        pending: int | None,
    ) -> None:
        values: dict[str, Value] = {"until": round(until.timestamp(), 3)}
        condition = "attribute_not_exists(clears)"
        if "clears" in flag:
            condition, values["clears"] = "clears = :clears", flag["clears"]
        changes = "SET raised_until = :until"
        if pending is not None:
            changes, values["pending"] = f"{changes}, arrived = :pending", pending
        if for_capacity:
            changes, values["yes"] = f"{changes}, for_capacity = :yes", True
        else:
            changes += " REMOVE for_capacity"
        self._table.write(update(_key(actor), changes).only_if(condition, **values))


def encode_request(request: DispatchRequest) -> str:
    """The message of a request."""
    return json.dumps({"actor": request.actor, **({} if request.turn is None else {"turn": request.turn})})


def decode_request(body: bytes) -> DispatchRequest:
    """Decodes a request.

    Raises:
        ValueError: if the message is malformed.
    """
    content = json.loads(body)
    actor = content.get("actor") if isinstance(content, dict) else None
    turn = content.get("turn") if isinstance(content, dict) else None
    if not isinstance(actor, str) or not isinstance(turn, int | None):
        raise ValueError("a dispatch request must be an object with an 'actor' name and an optional integer 'turn'")
    return DispatchRequest(names.check_label(actor, "actor"), turn)


def _key(actor: str) -> Key:
    return Key(f"REQUEST#{actor}", "request")


def _is_set(flag: Item, now: datetime) -> bool:
    return flag.number("raised_until", 0.0) > now.timestamp()


def _clears(flag: Item) -> int:
    return flag.integer("clears", 0)
