"""Sends the envelope of a task whose wait is due (`protocol §11`).

The order makes every step repeatable: send, write the tombstone, mark the record. If the process dies in between, the next sweep
sends the same message again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes, WaitKey
from asya.capabilities.pauses.waiting import as_sent, is_due, release_delivery
from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.protocol.wait import TaskWait
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class WaitReleases:
    """Releases the envelopes whose wait is due.

    Attributes:
        warn: logs a release that the next sweep must repeat.
    """

    mesh: MeshTable
    tasks: Tasks
    held: HeldEnvelopes
    sender: SubmissionSender
    warn: Callable[[str], None]

    def finish(self, record: TaskRecord, now: datetime) -> bool:
        """Send the envelope of a record whose wait is due, and mark the wait as sent; returns whether that is done.

        An error is only logged, because the next sweep repeats the release.
        """
        wait = record.wait
        if wait is None or not is_due(wait, now):
            return False
        try:
            self._send(record, wait, now)
            self._mark(record.id, wait, now)
        except (NotSentError, MaybeSentError, TaskStoreError, ClientError, BotoCoreError, ParseError) as error:
            self.warn(
                f"task {record.id} waits at {wait.actor} beyond {wait.until}; the next sweep tries again: {error}"
            )
            return False
        return True

    def _send(self, record: TaskRecord, wait: TaskWait, now: datetime) -> None:
        key = WaitKey(record.id, record.generation, wait.position, wait.attempt)
        envelope = self.held.load(key)
        if isinstance(envelope, Envelope):
            self.sender.send(release_delivery(envelope, self.mesh, now))
            self.held.mark_resumed(key, at=format_time(now))
        elif envelope is None:
            self.warn(f"task {record.id} cannot go on after its wait at {wait.actor}: its held envelope has expired")

    def _mark(self, task_id: str, wait: TaskWait, now: datetime) -> None:
        self.tasks.update(task_id, lambda record, _: as_sent(record, wait), now)
