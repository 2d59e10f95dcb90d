"""Sends checks of lanes to `x-triggers` (`protocol §16.lane.repair`, `§16.window.close`)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.triggers.lane_messages import encode_check
from asya.capabilities.triggers.lanes import LaneKey

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


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
