"""Takes the steps of a backfill: notes slots, then starts their tasks (`protocol §16.backfill.state`).

| the process dies | the next step |
|---|---|
| before it notes the slots | finds the state as it was |
| before it starts a noted slot | starts it |
| before it notes the start | starts it again; its key starts the task once |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from asya.capabilities.triggers.aws.backfills import Backfills, StoredBackfill
from asya.capabilities.triggers.lambdas.starts import FINAL
from asya.capabilities.triggers.occurrences import Occurrence
from asya.capabilities.triggers.operators.backfill import MOST_AT_ONCE, Backfill, Step, advance, with_starts
from asya.protocol.api_errors import ApiError
from asya.protocol.task import TaskRecord
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore, TaskStoreError

_STEPS = 30
"""Steps at a time; the sweep of the next minute goes on."""

Start = Callable[[Occurrence], object]
"""Starts the task of an occurrence once.

Raises:
    ApiError: the start was refused, or somebody else is at it.
    TaskStoreError: the table is unavailable.
"""


@dataclass
class _Starts:
    """What became of the starts of one step."""

    started: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BackfillRunner:
    """Moves backfills on.

    Attributes:
        tasks: the records of tasks.
    """

    services: Services
    backfills: Backfills
    tasks: TaskStore

    def advance(self, backfill_id: str, start: Start) -> None:
        """Take the steps of a backfill that are possible now.

        Args:
            backfill_id: the id of the backfill.
            start: starts the task of an occurrence.

        Raises:
            TaskStoreError: the state or the records are unavailable.
        """
        for number in range(_STEPS):
            stored = self.backfills.read(backfill_id)
            if stored is None:
                self.services.telemetry.log.warning("there is no such backfill", backfill=backfill_id)
                return
            if not stored.backfill.is_open:
                return
            now = self.services.now()
            # Most slots have no task yet. Where many have one, the further steps look at more.
            step = self._step(stored.backfill, MOST_AT_ONCE if number else stored.backfill.room, now)
            written = self._write(stored, step.backfill, now)
            if written is None:
                continue  # another process took this step
            starts = self._start_all(step, start)
            self._note(backfill_id, starts, now)
            if not step.reads_on and not starts.failed:
                return

    def _write(self, stored: StoredBackfill, backfill: Backfill, now: datetime) -> StoredBackfill | None:
        if backfill == stored.backfill:
            return stored
        written = self.backfills.replace(stored, backfill, now)
        if written is not None and backfill.state != stored.backfill.state:
            self.services.telemetry.log.info("backfill changed", backfill=backfill.id, state=backfill.state)
        return written

    def _step(self, backfill: Backfill, most: int, now: datetime) -> Step:
        trigger = self.services.settings.table.triggers.get(backfill.trigger)
        may_start = trigger is not None and trigger.enabled
        following = backfill.following(most) if may_start and backfill.is_running else []
        return advance(backfill, following, self._records(backfill, following, now), now, may_start=may_start)

    def _records(self, backfill: Backfill, following: Sequence[str], now: datetime) -> dict[str, TaskRecord]:
        """The records of the noted and the following slots.

        Raises:
            TaskStoreError: the table is unavailable, or a later version has written the record of a running task.
        """
        ids = [backfill.task_id(slot) for slot in (*(each.slot for each in backfill.noted), *following)]
        stored = self.tasks.records(ids, now, consistent=True) if ids else {}
        records = {task_id: each.record for task_id, each in stored.items()}
        for task_id in (backfill.task_id(each.slot) for each in backfill.noted if each.is_started):
            # Such a read leaves out records that it cannot decode, and a missing one would count as expired.
            if task_id not in records and (loaded := self.tasks.load(task_id, now)) is not None:
                records[task_id] = loaded[0]
        return records

    def _start_all(self, step: Step, start: Start) -> _Starts:
        """Start the noted slots. One that cannot start now is left to a later step."""
        starts, log = _Starts(), self.services.telemetry.log
        trigger = self.services.settings.table.triggers.get(step.backfill.trigger)
        for slot in step.to_start if trigger is not None else ():
            assert trigger is not None
            try:
                start(step.backfill.occurrence(slot, trigger))
            except ApiError as error:
                if error.status in FINAL:
                    starts.failed[slot] = f"{error.code}: {error}"
                log.warning("a slot was not started", backfill=step.backfill.id, slot=slot, problem=str(error))
            except TaskStoreError as error:
                log.warning("a slot waits", backfill=step.backfill.id, slot=slot, problem=str(error))
            else:
                starts.started.add(slot)
        return starts

    def _note(self, backfill_id: str, starts: _Starts, now: datetime) -> None:
        """Note the starts; without the note, the next step repeats them."""
        while starts.started or starts.failed:
            stored = self.backfills.read(backfill_id)
            if stored is None:
                return
            changed = with_starts(stored.backfill, starts.started, starts.failed)
            if changed == stored.backfill or self.backfills.replace(stored, changed, now) is not None:
                return
