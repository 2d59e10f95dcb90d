"""The sweeps over open tasks: fail overdue ones and find lost ones (`protocol §13`, backstop; `§13.lost`).

The deadline sweep reads the deadlines of each minute from an index, and the records of these tasks; most tasks have
ended by then. It reads the last minutes again, because index entries and records may arrive late. It stores the last
processed minute, so that an outage of the sweep skips no deadline. Somebody may give any number of tasks deadlines of one
minute. So it also stores the task at which its time is over, and the next sweep goes on behind it.

The deadline sweep writes nothing while ends may wait in the queue `x-ends` for longer than a minute: the tasks may
have ended.

Before that it enters the open tasks that began some minutes ago into the lists of open tasks and of deadlines
(`asya.tasks.aws.lasting`). It goes by no deadline that is not entered.

A grace period follows each deadline: x-sink reports the timeout of a running task first, and names the actor. A sweep
every minute still fails an overdue task within two minutes.

Each sweep for lost tasks reads the open tasks of some hours of creation from the index of lists, and goes on there
the next minute. It never reads tasks that are younger than the shortest silence. So it costs a few queries a minute,
and one for each old open task of a round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.ends_delay import Delay
from asya.protocol.events import TaskEvent
from asya.protocol.hops import fold
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks import sweeps
from asya.tasks.aws.index import LAST_ID, NEWEST, SOON, DueKey, ListKey, ListState, TaskIndex, minute_of
from asya.tasks.aws.lasting import LastingTasks
from asya.tasks.aws.sweep_marks import LostMarks, SweepMark, SweepMarks
from asya.tasks.aws.task_store import TaskStore, UnreadableRecordError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.sweeps import INITIAL_WINDOW, unswept_minutes
from asya.tasks.view import fail_if_overdue, is_overdue

# The report of x-sink may take this long.
GRACE_PERIOD = timedelta(seconds=20)
_MINUTE = timedelta(minutes=1)
MAX_MINUTES = 240  # per sweep
TIME_LIMIT = 45.0  # seconds per sweep
ENTER_LIMIT = 20.0  # of them
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
    lasting: LastingTasks

    def sweep(self) -> None:
        """Sweep once; the next sweep continues after the time limit.

        Raises:
            TaskStoreError: the table is unavailable.
            ClientError, BotoCoreError: the queue of ends cannot be asked.
        """
        # Before the first call, because each call may take seconds, and the function has a minute.
        began = self.services.environment.monotonic()
        ends_at = began + TIME_LIMIT
        now = self.services.now()
        last = self.marks.read()
        mark = last or SweepMark(now - GRACE_PERIOD - INITIAL_WINDOW)
        count = 0
        try:
            is_over = partial(self._is_over, began + ENTER_LIMIT)
            mark = mark._replace(entered=self.lasting.enter(mark.entered, now, is_over=is_over))
            if (delay := self.ends.delay()) != "none":
                self._hold(delay)
                return
            until = min(now - GRACE_PERIOD, mark.entered + SOON)
            for minute in islice(_minutes_after(mark, until), MAX_MINUTES):
                failed, stopped_at = self._fail_overdue(
                    minute_of(format_time(minute)), until, now, ends_at, mark.stopped_at
                )
                count += failed
                if stopped_at is not None:
                    mark = mark._replace(stopped_at=stopped_at)
                    break
                is_past = minute + _MINUTE <= until
                mark = mark._replace(until=minute + _MINUTE if is_past else minute, stopped_at=None)
                if self._is_over(ends_at):
                    break
            self.services.finish_sweep()
        finally:
            if mark != last:
                self.marks.write(mark)
            if count:
                self.services.telemetry.log.warning("tasks timed out", count=count)
                self.services.telemetry.count("SlaExpired", count)
            self.services.telemetry.flush()

    def _hold(self, delay: Delay) -> None:
        """Fail nothing: tasks that have ended would fail. Readers see overdue tasks as failed anyway.

        The sweep after the delay starts at the mark of this one, however long it lasts.
        """
        self.services.telemetry.log.warning("deadlines not written, because ends wait in x-ends", delay=delay)
        self.services.finish_sweep()

    def _is_over(self, ends_at: float) -> bool:
        return self.services.environment.monotonic() > ends_at

    def _fail_overdue(
        self, minute: str, until: datetime, now: datetime, ends_at: float, after: DueKey | None
    ) -> tuple[int, DueKey | None]:
        """Fail the tasks with a deadline in a minute that were overdue at `until`.

        Args:
            after: the task behind which to begin; None for the first one of the minute.

        Returns:
            their number, and the last task that was read if the time is over.
        """
        due, count = self.index.due(minute, after), 0
        while keys := list(islice(due, BATCH_SIZE)):
            for task_id, stored in self.store.records([key.task_id for key in keys], now).items():
                if is_overdue(stored.record, until):
                    # The update checks the latest record again, because the task may have ended or paused since the read.
                    self.tasks.update(task_id, lambda record, _: self._failed(record, until), now)
                    count += 1
            if self._is_over(ends_at):
                return count, keys[-1]
        return count, None

    def _failed(self, record: TaskRecord, until: datetime) -> TaskRecord:
        return fail_if_overdue(record, until, self.services.outages_since)


def _minutes_after(mark: SweepMark, until: datetime) -> Iterator[datetime]:
    """The minutes that a sweep reads: those that are unswept, but none before the one in which the last sweep has stopped."""
    minutes = unswept_minutes(mark.until, until)
    stopped_at = mark.stopped_at
    return (each for each in minutes if stopped_at is None or minute_of(format_time(each)) >= stopped_at.minute)


# Per sweep: hours of creation, and tasks whose hops are read. A round through 30 days takes two and a half hours.
MAX_HOURS = 5
MAX_TASKS = 100
LOST_TIME_LIMIT = 10.0  # seconds
PAGE_SIZE = 100
_OPEN: tuple[ListState, ...] = ("open",)


@dataclass(frozen=True, slots=True)
class LostSweep:
    """Says which tasks of the mesh are lost."""

    services: Services
    index: TaskIndex
    store: TaskStore
    tasks: Tasks
    marks: LostMarks
    ends: EndsQueue

    def sweep(self) -> None:
        """Sweep once. While reports may wait in their queues, nothing is said.

        Raises:
            TaskStoreError: the table is unavailable.
            ClientError, BotoCoreError: the queue of ends cannot be asked.
        """
        ends_at = self.services.environment.monotonic() + LOST_TIME_LIMIT
        youngest = self.services.now() - sweeps.shortest_silence(self.services.settings.table)
        mark, count, lost = self.marks.read(), 0, list[str]()
        reached = mark
        for key in self._open_tasks(min(mark or NEWEST, ListKey(format_time(youngest), LAST_ID))):
            if count == MAX_TASKS or self.services.environment.monotonic() > ends_at:
                break
            if key is not None and key.task_id:
                count += 1
                if (report := self._report_of(key.task_id)) is not None:
                    if not lost and self.ends.delay() != "none":
                        break  # its report may wait in the queue
                    self.tasks.report([report], self.services.now(), may_create=False)
                    lost.append(key.task_id)
            reached = key
        if reached != mark:
            self.marks.write(reached)
        if lost:
            self.services.telemetry.log.error("tasks lost", count=len(lost), envelope_ids=lost)
        self.services.telemetry.flush()

    def _open_tasks(self, before: ListKey) -> Iterator[ListKey | None]:
        """The open tasks of some hours, newest first, and a key below them after each hour; None at the end of the round."""
        hours = self.index.hours(before, self.services.now())
        for hour in islice(hours, MAX_HOURS):
            page_end: ListKey | None = before
            while page_end is not None:
                page = self.index.listed(hour, _OPEN, page_end, PAGE_SIZE)
                yield from page.keys
                page_end = page.complete_to
            yield ListKey(hour, "")
        if next(hours, None) is None:
            yield None

    def _report_of(self, task_id: str) -> TaskEvent | None:
        """The report on a task that is lost and does not say so yet; None for any other."""
        now, mesh = self.services.now(), self.services.settings.table
        try:
            loaded = self.store.load(task_id, now)
        except UnreadableRecordError:
            return None
        if loaded is None:
            return None
        record, hops = loaded[0], fold(loaded[1], loaded[0].generation)
        return sweeps.lost_report(record, hops, mesh) if sweeps.is_lost(record, hops, mesh, now) else None
