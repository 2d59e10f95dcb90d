"""Fails overdue tasks every minute; readers see them as failed even earlier (`protocol §13`, backstop).

The sweep reads the deadlines of each minute from an index, and the records of these tasks; most tasks have ended by then. It
reads the last minutes again, because index entries and records may arrive late. It stores the last processed minute, so that an
outage of the sweep skips no deadline.

The sweep writes nothing while ends may wait in the queue `x-ends` for longer than a minute: the tasks may have ended.

A grace period follows each deadline: x-sink reports the timeout of a running task first, and names the actor. A sweep every
minute still fails an overdue task within two minutes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.ends_delay import Delay
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.index import TaskIndex, minute_of
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.overdue import INITIAL_WINDOW, unswept_minutes
from asya.tasks.view import fail_if_overdue, is_overdue

# The report of x-sink may take this long.
GRACE_PERIOD = timedelta(seconds=20)
MAX_MINUTES = 240  # per sweep
TIME_LIMIT = 45.0  # seconds per sweep
BATCH_SIZE = 100  # records per read


@dataclass(frozen=True, slots=True)
class DeadlineSweep:
    """Fails the overdue tasks of the mesh."""

    services: Services
    index: TaskIndex
    store: TaskStore
    tasks: Tasks
    marks: SweepMarks
    ends: EndsQueue

    def sweep(self) -> None:
        """Sweep once; the next sweep continues after the time limit.

        Raises:
            TaskStoreError: the table is unavailable.
            ClientError, BotoCoreError: the queue of ends cannot be asked.
        """
        # Before the first call, because each call may take seconds, and the function has a minute.
        ends_at = self.services.environment.monotonic() + TIME_LIMIT
        if (delay := self.ends.delay()) != "none":
            self._hold(delay)
            return
        now = self.services.now()
        until = now - GRACE_PERIOD
        count, last_minute = 0, None
        try:
            for minute in islice(unswept_minutes(self.marks.read(), until), MAX_MINUTES):
                failed, is_done = self._fail_overdue(minute_of(format_time(minute)), until, now, ends_at)
                count += failed
                last_minute = minute if is_done else last_minute
                if self._is_over(ends_at):
                    break
            self.services.telemetry.count("Sweeps")
        finally:
            if last_minute is not None:
                self.marks.write(last_minute)
            if count:
                self.services.telemetry.log.warning("tasks timed out", count=count)
                self.services.telemetry.count("SlaExpired", count)
            self.services.telemetry.flush()

    def _hold(self, delay: Delay) -> None:
        """Write nothing: tasks that have ended would fail. Readers see overdue tasks as failed anyway."""
        if self.marks.read() is None:
            # The sweep after the delay starts here, however long it lasts.
            self.marks.write(self.services.now() - INITIAL_WINDOW)
        self.services.telemetry.log.warning("deadlines not written, because ends wait in x-ends", delay=delay)
        self.services.telemetry.count("Sweeps")
        self.services.telemetry.flush()

    def _is_over(self, ends_at: float) -> bool:
        return self.services.environment.monotonic() > ends_at

    def _fail_overdue(self, minute: str, until: datetime, now: datetime, ends_at: float) -> tuple[int, bool]:
        """Fail the tasks with a deadline in a minute that were overdue at `until`.

        Returns:
            their number, and whether these are all: one minute may have more than a sweep has time for.
        """
        due, count = self.index.due(minute), 0
        while ids := list(islice(due, BATCH_SIZE)):
            if count and self._is_over(ends_at):
                return count, False
            for task_id, stored in self.store.records(ids, now).items():
                if is_overdue(stored.record, until):
                    # The update checks the latest record again, because the task may have ended or paused since the read.
                    self.tasks.update(task_id, lambda record, _: self._failed(record, until), now)
                    count += 1
        return count, True

    def _failed(self, record: TaskRecord, until: datetime) -> TaskRecord:
        return fail_if_overdue(record, until, self.services.outages_since)
