"""Finds open tasks of which nothing was heard for longer than anything can hold an envelope (`protocol §13.lost`).

Each sweep reads the open tasks of some hours of creation from the index of lists, and goes on there the next minute. It never
reads tasks that are younger than the shortest silence. So it costs a few queries a minute, and one for each old open task of a
round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from asya.gateway.aws.ends_queue import EndsQueue
from asya.protocol.events import TaskEvent
from asya.protocol.hops import fold
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks import silence
from asya.tasks.aws.index import LAST_ID, NEWEST, ListKey, ListState, TaskIndex
from asya.tasks.aws.sweep_marks import LostMarks
from asya.tasks.aws.task_store import TaskStore, UnreadableRecordError
from asya.tasks.aws.tasks import Tasks

# Per sweep: hours of creation, and tasks whose hops are read. A round through 30 days takes two and a half hours.
MAX_HOURS = 5
MAX_TASKS = 100
TIME_LIMIT = 10.0  # seconds
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
        ends_at = self.services.environment.monotonic() + TIME_LIMIT
        youngest = self.services.now() - silence.shortest_silence(self.services.settings.table)
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
        return silence.lost_report(record, hops, mesh) if silence.is_lost(record, hops, mesh, now) else None
