"""Every minute: tasks past their deadline are written down as failed; readers are told so before (`protocol §13`, backstop).

A minute's deadlines are read from an index, the records behind them tell which tasks have ended: most have, and cost a read.
Each of the last minutes is looked at several times, so that what the index or a record's birth was late with is found. How far
all is decided is noted, so that nothing is missed while nobody looked.

A deadline is left alone for some seconds: who runs out of time tells so, by x-sink, and knows where it was. With a minute
between two sweeps what is overdue is still written down well within two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.index import TaskIndex, minute_of
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import fail_if_overdue, is_overdue

# How many minutes are looked at again.
AGAIN = timedelta(minutes=3)
# How long the end that x-sink reports may take to arrive.
GRACE = timedelta(seconds=20)
# How far back the first sweep of all looks, and how many minutes one sweep looks at, at most.
FIRST = timedelta(minutes=30)
MOST = 240
SECONDS = 45.0
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class DeadlineSweep:
    """Looks after the deadlines of all tasks of the mesh."""

    services: Services
    index: TaskIndex
    store: TaskStore
    tasks: Tasks
    marks: SweepMarks

    def sweep(self) -> None:
        """One sweep. What it does not come to is left for the next.

        Raises:
            TaskStoreError: if the table cannot be read or written now.
        """
        now = self.services.now()
        moment = now - GRACE
        ends = self.services.environment.monotonic() + SECONDS
        begin = min(self.marks.read() or moment - FIRST, moment - AGAIN)
        count, looked_at = 0, None
        try:
            for minute in islice(_minutes(begin, moment), MOST):
                count += self._expire(minute_of(format_time(minute)), moment, now)
                looked_at = minute
                if self.services.environment.monotonic() > ends:
                    break
        finally:
            if looked_at is not None:
                self.marks.write(looked_at)
            if count:
                self.services.telemetry.log.warning("tasks timed out", count=count)

    def _expire(self, minute: str, moment: datetime, now: datetime) -> int:
        """Write the tasks of a minute down that were overdue at a moment; how many there were."""
        due, count = self.index.due(minute), 0
        while ids := list(islice(due, AT_ONCE)):
            for task_id, stored in self.store.records(ids, now).items():
                if is_overdue(stored.record, moment):
                    # Decided again on what the record is then: it may have ended, or been paused, in between.
                    self.tasks.update(task_id, lambda record, _: fail_if_overdue(record, moment), now)
                    count += 1
        return count


def _minutes(begin: datetime, end: datetime) -> Iterator[datetime]:
    minute = begin.replace(second=0, microsecond=0)
    while minute <= end:
        yield minute
        minute += timedelta(minutes=1)
