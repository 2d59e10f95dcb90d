"""The dead letters of reports: counted, and sent to their queues again (`protocol §4`)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from asya.capabilities.dead_letters.aws.queue import DeadLetterQueue
from asya.client.errors import MeshError
from asya.function.aws.missing_queues import is_missing_queue
from asya.protocol import names
from asya_cli.aws_errors import aws_errors
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.capabilities.dead_letters.aws.queue import ReceivedMessage
    from asya.client.mesh_client import MeshClient

HIDE_SECONDS = 300
"""Visibility timeout of a message during a scan. The end of the scan makes it visible again at once."""


class ReportLetters:
    """The dead-letter queues of a mesh's reports, with an operator's credentials. The gateway sends.

    Raises:
        CommandError: from each method, if a queue does not exist, or SQS or the gateway fails or denies access.
    """

    def __init__(self, mesh: MeshClient) -> None:
        self._mesh = mesh
        self._sqs: Any = mesh.connection.sqs()
        self._namespace = mesh.connection.namespace

    def count(self, name: str) -> int:
        """Return the number of dead letters behind a queue; all of them stay."""
        with self._scan(name) as batches:
            return sum(map(len, batches))

    def replay(self, name: str) -> int:
        """Send the dead letters behind a queue to it again, delete each one, and return their number.

        A crash between the two repeats the send at the next call.
        """
        queue = self._dead_letters(name)
        count = 0
        with self._scan(name) as batches:
            for message in (each for batch in batches for each in batch):
                advice = (
                    f"{name}: {count} sent again. The others stay in their queue; repair the cause, and run it again."
                )
                try:
                    self._mesh.redrive(name, message.arrival, force=False)
                except MeshError as error:
                    problem = f"cannot send the dead letter {message.message_id} of {name}: {error.problem}"
                    raise CommandError(problem, advice) from error
                count += 1
                problem = (
                    f"cannot delete the dead letter {message.message_id} of {name}, which has been sent; the next "
                )
                with aws_errors(f"{problem}replay sends it once more, which changes nothing"):
                    queue.delete(message)
        return count

    @contextmanager
    def _scan(self, name: str) -> Iterator[Iterator[list[ReceivedMessage]]]:
        """Iterate over the dead letters in batches. At the end those that are left become visible again."""
        queue = self._dead_letters(name)
        seen: list[ReceivedMessage] = []

        def batches() -> Iterator[list[ReceivedMessage]]:
            for batch in queue.scan(hide_seconds=HIDE_SECONDS):
                seen.extend(batch)
                yield batch

        with aws_errors(f"cannot read the dead letters of {name}"):
            try:
                yield batches()
            finally:
                queue.release(seen)

    def _dead_letters(self, name: str) -> DeadLetterQueue:
        return DeadLetterQueue(self._sqs, self._url(names.dlq_name(self._namespace, name)))

    def _url(self, queue: str) -> str:
        with aws_errors(f"cannot find the queue {queue}"):
            try:
                return str(self._sqs.get_queue_url(QueueName=queue)["QueueUrl"])
            except ClientError as error:
                if is_missing_queue(error):
                    raise CommandError(
                        f"the mesh {self._namespace!r} has no queue {queue}",
                        "A mesh of an earlier version reports without queues: deploy it again.",
                    ) from None
                raise
