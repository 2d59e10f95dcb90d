"""The last step of a resume, and of cancelling a paused task: the kept envelope is sent, and that is written down (`protocol §11`).

That it is to be sent stands in the task's record before, in one write with the new status. Whoever dies in between leaves that
note, and a sweep sends again; x-resume and x-sink take the same envelope a second time without harm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.messaging.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.pause.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.pause.resuming import release_delivery
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.pause import PauseRelease
from asya.protocol.task import TaskRecord
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class PauseReleases:
    """Sends what is kept of paused tasks.

    Attributes:
        warn: takes a line about what is left for the next sweep.
    """

    tasks: Tasks
    paused: PausedEnvelopes
    sender: SubmissionSender
    warn: Callable[[str], None]

    def finish(self, record: TaskRecord, now: datetime) -> None:
        """Send what the record says is still to be sent, and take the note away; nothing if it says nothing.

        What goes wrong is only logged: the sweep does it again.
        """
        handover = record.handover
        if handover is None:
            return
        try:
            self._send(record, handover)
            self._clear(record.id, handover, now)
        except (NotSentError, MaybeSentError, TaskStoreError, ClientError, BotoCoreError, ParseError) as error:
            self.warn(f"task {record.id} still has to be handed over to {handover.to}: {error}")

    def _send(self, record: TaskRecord, handover: PauseRelease) -> None:
        kept = self.paused.load(PauseKey(record.id, record.generation, handover.epoch))
        if isinstance(kept, Envelope):
            self.sender.send(release_delivery(kept, handover))
        elif kept is None:
            self.warn(f"nothing is kept any more of task {record.id}, which was to be handed over to {handover.to}")

    def _clear(self, task_id: str, done: PauseRelease, now: datetime) -> None:
        self.tasks.update(
            task_id,
            lambda record, _: replace(record, handover=None) if record.handover == done else record,
            now,
        )
