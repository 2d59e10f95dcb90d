"""Sends to the queue `x-triggers`: ends of tasks, checks of lanes, slots, operators' wishes (`protocol §16`)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.triggers.lanes import LaneKey
from asya.capabilities.triggers.messages import EndNotice, encode_check, encode_end_notice, end_notice, slot_message
from asya.function.aws import clients
from asya.function.aws.table import chunks
from asya.function.lambdas.function import Function
from asya.function.sqs import BATCH_ENTRIES
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.task import TaskRecord
from asya.protocol.triggers import Trigger

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class EndNotices:
    """Sends notices of ended tasks.

    A notice that is lost delays what waits for the end until the next sweep. So a failure is logged and has no other effect.

    Args:
        client: the client of SQS.
        url: the URL of the queue of triggers.
        triggers: the triggers of the mesh.
        warn: logs a warning.
    """

    def __init__(
        self, client: "SQSClient", url: str, triggers: Mapping[str, Trigger], warn: Callable[[str], None]
    ) -> None:
        self._client = client
        self._url = url
        self._triggers = triggers
        self._warn = warn

    def send(self, records: Sequence[TaskRecord]) -> None:
        """Send the notices of ended tasks; most tasks have none."""
        notices = [notice for record in records if (notice := end_notice(record, self._triggers)) is not None]
        for batch in chunks(notices, BATCH_ENTRIES):
            if problem := self._send(batch):
                self._warn(f"x-triggers was not told of the end of {len(batch)} tasks, the sweep finds them: {problem}")

    def _send(self, notices: Sequence[EndNotice]) -> str | None:
        entries = [(str(number), encode_end_notice(notice).decode()) for number, notice in enumerate(notices)]
        try:
            answer = self._client.send_message_batch(
                QueueUrl=self._url, Entries=[{"Id": number, "MessageBody": body} for number, body in entries]
            )
        except (ClientError, BotoCoreError) as error:
            return str(error)
        failed = answer.get("Failed", [])
        return failed[0].get("Message", failed[0]["Code"]) if failed else None


def build_end_notices(own: Function) -> Callable[[Sequence[TaskRecord]], None] | None:
    """Return the function that sends notices of ended tasks; None for a mesh without triggers."""
    settings = own.settings
    if not settings.table.triggers:
        return None
    return EndNotices(clients.sqs(), settings.queue_url(names.TRIGGERS), settings.table.triggers, own.warn).send


class LaneChecks:
    """The queue of triggers, for checks of lanes.

    Args:
        client: the client of SQS.
        url: the URL of the queue.
        warn: logs a warning.
    """

    def __init__(self, client: "SQSClient", url: str, warn: Callable[[str], None]) -> None:
        self._client = client
        self._url = url
        self._warn = warn

    def send(self, key: LaneKey, *, closes: str | None = None, delay: int = 0) -> None:
        """Have a lane looked at. A failure is only logged, because the sweep looks at the lane too.

        Args:
            key: the lane.
            closes: the id of the task that the open window starts, if the check closes it.
            delay: seconds until then, 900 at most.
        """
        body = encode_check(key, closes).decode()
        try:
            self._client.send_message(QueueUrl=self._url, MessageBody=body, DelaySeconds=delay)
        except (ClientError, BotoCoreError) as error:
            self._warn(f"a check of a lane of the trigger {key.trigger!r} was not sent, the sweep looks at it: {error}")


class SlotSender:
    """The queue of triggers, for slots.

    Args:
        client: the client of SQS.
        url: the URL of the queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, trigger: str, slots: Sequence[datetime]) -> None:
        """Send slots of a trigger in one message, because a queue keeps no order; it may arrive twice.

        Args:
            trigger: the name of the trigger.
            slots: the slots, oldest first.

        Raises:
            ClientError, BotoCoreError: the slots may not be on the queue; send them again.
        """
        if slots:
            body = slot_message(trigger, slots[0], slots[1:]).decode()
            self._client.send_message(QueueUrl=self._url, MessageBody=body)


class OperatorQueue:
    """The queue of triggers.

    Args:
        client: the client of SQS.
        url: the URL of the queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, message: bytes) -> None:
        """Send a message.

        Raises:
            ApiError: 503 if SQS does not take it; the same call may be repeated.
        """
        try:
            self._client.send_message(QueueUrl=self._url, MessageBody=message.decode())
        except (ClientError, BotoCoreError) as error:
            raise ApiError(503, "unavailable", "the queue x-triggers is unavailable; try again") from error
