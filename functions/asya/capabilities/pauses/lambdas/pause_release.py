"""Sends the envelope of a task whose pause ended by a resume or a cancellation (`protocol §11`).

The write that changes the task's status also adds the release to its record. If the process dies before it removes the
release, a sweep sends the envelope again. x-resume and x-sink are idempotent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.capabilities.pauses.resuming import release_delivery
from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.pause import PauseRelease
from asya.protocol.task import TaskRecord
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class PauseReleases:
    """Releases the envelopes of paused tasks.

    Attributes:
        warn: logs a release that the next sweep must repeat.
    """

    tasks: Tasks
    paused: PausedEnvelopes
    sender: SubmissionSender
    warn: Callable[[str], None]

    def finish(self, record: TaskRecord, now: datetime) -> None:
        """Send the envelope of a record with a release, and remove the release.

        An error is only logged, because the sweep repeats the release.
        """
        release = record.handover
        if release is None:
            return
        try:
            self._send(record, release)
            self._clear(record.id, release, now)
        except (NotSentError, MaybeSentError, TaskStoreError, ClientError, BotoCoreError, ParseError) as error:
            self.warn(f"task {record.id} could not be released to {release.to}; the sweep tries again: {error}")

    def _send(self, record: TaskRecord, release: PauseRelease) -> None:
        envelope = self.paused.load(PauseKey(record.id, record.generation, release.epoch))
        if isinstance(envelope, Envelope):
            self.sender.send(release_delivery(envelope, release))
        elif envelope is None:
            self.warn(f"task {record.id} cannot be released to {release.to}: its stored envelope has expired")

    def _clear(self, task_id: str, release: PauseRelease, now: datetime) -> None:
        self.tasks.update(
            task_id,
            lambda record, _: replace(record, handover=None) if record.handover == release else record,
            now,
        )
