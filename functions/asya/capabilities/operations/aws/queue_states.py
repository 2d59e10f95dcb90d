"""Counts and settings of the queues of a mesh."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.capabilities.operations.mesh_numbers import QueueCount, QueueState
from asya.function.aws.missing_queues import is_missing_queue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_THREADS = 16


class _RedrivePolicy(msgspec.Struct, rename="camel"):
    max_receive_count: int


@dataclass(frozen=True)
class QueueStates:
    """The queues of a mesh.

    Attributes:
        is_threaded: whether queues may be counted in threads.

    Raises:
        ClientError, BotoCoreError: from every method, if SQS fails or denies access.
    """

    sqs: "SQSClient"
    is_threaded: bool = True

    def counts(self, actors: Sequence[str], url: Callable[[str], str]) -> dict[str, QueueCount]:
        """Count the messages of each actor's queue; a queue that is not there has none.

        Args:
            actors: the actors.
            url: returns the URL of an actor's queue.
        """
        urls = [url(actor) for actor in actors]
        if not self.is_threaded or len(urls) < 2:
            return dict(zip(actors, map(self._count, urls), strict=True))
        with ThreadPoolExecutor(_THREADS) as executor:
            return dict(zip(actors, executor.map(self._count, urls), strict=True))

    def state(self, url: str) -> QueueState:
        """Read the settings of a queue."""
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        policy = attributes.get("RedrivePolicy")
        return QueueState(
            visibility_timeout=int(attributes["VisibilityTimeout"]),
            retention=int(attributes.get("MessageRetentionPeriod", "345600")),
            max_receives=msgspec.json.decode(policy, type=_RedrivePolicy, strict=False).max_receive_count
            if policy
            else None,
        )

    def _count(self, url: str) -> QueueCount:
        try:
            attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        except ClientError as error:
            if not is_missing_queue(error):
                raise
            return QueueCount()
        waiting = int(attributes["ApproximateNumberOfMessages"]) + int(
            attributes.get("ApproximateNumberOfMessagesDelayed", "0")
        )
        return QueueCount(waiting, int(attributes["ApproximateNumberOfMessagesNotVisible"]))
