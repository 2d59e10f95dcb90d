"""Ends pauses with a timer, as a resume without answers does (`protocol §11`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import UNSET

from asya.capabilities.pauses.aws.paused_envelopes import PauseKey
from asya.capabilities.pauses.lambdas.pause_release import PauseReleases
from asya.capabilities.pauses.resuming import resume_task
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.tasks.aws.task_store import TaskStoreError


@dataclass(frozen=True, slots=True)
class PauseTimers:
    """Ends the pauses whose timer has run down.

    Attributes:
        warn: logs a timer that the next sweep must repeat.
    """

    releases: PauseReleases
    warn: Callable[[str], None]

    def finish(self, record: TaskRecord, now: datetime) -> bool:
        """Resume a paused task whose timer has run down; returns whether it runs again.

        An error is only logged, because the next sweep repeats it. If the release dies, the next sweep sends it.
        """
        pause, epoch = record.pause, record.pause_epoch
        if record.status != "paused" or pause is None or epoch is None:
            return False
        if pause.until is UNSET or parse_time(pause.until) > now:
            return False
        try:
            resumed = self._resume(record.id, PauseKey(record.id, record.generation, epoch), now)
        except (ApiError, TaskStoreError, ClientError, BotoCoreError, ParseError) as error:
            self.warn(f"task {record.id} is paused beyond {pause.until}; the next sweep tries again: {error}")
            return False
        if resumed is None:
            return False
        self.releases.finish(resumed, now)
        return True

    def _resume(self, task_id: str, key: PauseKey, now: datetime) -> TaskRecord | None:
        """The record of the resumed task; None if its pause ended meanwhile, or its stored envelope has expired."""
        stored = self.releases.paused.load(key)
        if not isinstance(stored, Envelope):
            self.warn(f"task {task_id} cannot go on after its pause: its stored envelope is gone")
            return None

        def decide(record: TaskRecord, _hops: object) -> TaskRecord:
            if record.status != "paused" or (record.generation, record.pause_epoch) != (key.generation, key.epoch):
                return record
            return resume_task(record, stored, {}, now=now)

        record = self.releases.tasks.update(task_id, decide, now)
        return record if record is not None and record.resumed_epoch == key.epoch else None
