"""Notes how old the ends of this mesh are when `x-ends` delivers them (`protocol §13`, backstop).

The age of messages without reports for this mesh says nothing about its ends: a message that a foreign gateway does not take
returns for days, and must not look like a backlog.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.batch import Record
from asya.gateway.ends_delay import LATE_AGE, LATE_WINDOW
from asya.tasks.aws.ends_marks import EndsMarks, MarkKind
from asya.tasks.aws.task_store import TaskStoreError

# A process stores each kind of mark at most this often.
MARK_INTERVAL = timedelta(seconds=10)


@dataclass(slots=True)
class SteadyReceipt:
    """Since when this process receives the messages of `x-ends` without an interruption and without a late end."""

    since: datetime | None = None
    received_at: datetime | None = None

    def receive(self, now: datetime, *, late: bool) -> bool:
        """Count a batch; returns whether receipt has been steady for as long as an end may wait."""
        if late or self.since is None or self.received_at is None or now - self.received_at > LATE_WINDOW:
            self.since = now
        self.received_at = now
        return now - self.since >= LATE_AGE


@dataclass(slots=True)
class EndsAges:
    """Stores the marks of one process; an outlet of `BatchProcessor` that is flushed before the reports are written.

    A process that dies while it writes a late end has then said that the end waits. A fresh message proves that the function
    works only once it is written, so its mark comes last.

    The table may be unavailable: then no mark is stored, and the deadline sweep waits.
    """

    marks: EndsMarks
    telemetry: Telemetry
    now: Callable[[], datetime]
    _late: set[str] = field(default_factory=set)
    _fresh: set[str] = field(default_factory=set)
    _has_foreign: bool = False
    _marked: dict[MarkKind, datetime] = field(default_factory=dict)
    _steady: SteadyReceipt = field(default_factory=SteadyReceipt)

    def begin(self) -> None:
        """Begin a batch."""
        self._late, self._fresh, self._has_foreign = set(), set(), False

    def received(self, record: Record, *, own: bool, foreign: bool) -> None:
        """Note the age of a message.

        Args:
            own: whether it has reports for this mesh.
            foreign: whether it has reports for other gateways.
        """
        if own:
            is_late = self.now() - record.arrival.sent_at > LATE_AGE
            (self._late if is_late else self._fresh).add(record.message_id)
        self._has_foreign = self._has_foreign or foreign

    def flush(self) -> None:
        """Store that late ends are here, before any of them is written."""
        if self._late:
            self._mark("late")

    def end(self, kept: Collection[str]) -> None:
        """Store that fresh messages were written. Messages for foreign gateways alone count by their steady receipt.

        Args:
            kept: the ids of the messages that stay on the queue.
        """
        is_steady = self._steady.receive(self.now(), late=bool(self._late))
        if self._fresh - set(kept) or (self._has_foreign and is_steady):
            self._mark("fresh")

    def _mark(self, kind: MarkKind) -> None:
        now = self.now()
        if (last := self._marked.get(kind)) is not None and now - last < MARK_INTERVAL:
            return
        try:
            self.marks.write(kind, now)
        except TaskStoreError as error:
            self.telemetry.log.warning("age of ends not stored", problem=str(error))
        else:
            self._marked[kind] = now
