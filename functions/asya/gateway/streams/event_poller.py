"""Polls a task until it has new events, for streams and for Agent2Agent (`protocol §13`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from asya.function.lambdas.environment import Environment
from asya.gateway.streams.new_events import StreamEvent, has_state, has_unfinished_hops, new_events
from asya.gateway.streams.stream_cursor import StreamCursor
from asya.protocol.hops import HopRecord
from asya.protocol.times import parse_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.stream_events import PartialBatch, PartialKey
from asya.tasks.view import TaskView

POLL_SECONDS = 0.4
"""Seconds between two polls: a partial is shown within a second."""

HOP_GRACE_SECONDS = 2.0
"""Seconds for which `final` waits for the reports of the last hops: they travel on another queue than the end."""

_RECENT = timedelta(minutes=1)

_LONG_HISTORY = 100
"""Hop records above which a poll does not read the whole history every time."""
_POLLS_PER_FULL_READ = 5

_RECENT_RUNS = 4
"""Runs of hops whose partials most polls read; a full read finds late ones of earlier runs."""


class PartialReader(Protocol):
    """Reads the partials of a task."""

    def read(self, task_id: str, now: datetime, after: PartialKey | None = None) -> Iterator[PartialBatch]:
        """See `asya.tasks.aws.partials.PartialStore`."""


@dataclass(frozen=True, slots=True)
class _History:
    """A task and its hop records."""

    task: TaskView
    hops: tuple[HopRecord, ...]


@dataclass(frozen=True, slots=True)
class EventPoller:
    """Polls tasks for new events."""

    tasks: Tasks
    partials: PartialReader
    environment: Environment

    def poll(
        self, task_id: str, cursor: StreamCursor | None, now: datetime, seconds: float, *, with_partials: bool = True
    ) -> tuple[StreamEvent, ...]:
        """Return the new events as soon as there are any; none after `seconds`, or if the task does not exist.

        Args:
            cursor: The events that were shown; None if that is not known.
            now: The time at which the polling starts.
            with_partials: Whether partials count as events.

        Raises:
            TaskStoreError: If the table cannot be read.
        """
        started = self.environment.monotonic()
        history: _History | None = None
        final_seen: float | None = None
        polls = 0
        while True:
            elapsed = self.environment.monotonic() - started
            moment = now + timedelta(seconds=elapsed)
            is_full_read = polls % _POLLS_PER_FULL_READ == 0
            if history is None or len(history.hops) <= _LONG_HISTORY or is_full_read:
                history = self._history(task_id, moment)
            if history is None:
                return ()
            # An end or a pause is shown behind all partials.
            is_whole = is_full_read or not with_partials or _has_stopped_unseen(history.task, cursor)
            after = None if is_whole else _first_mark(cursor)
            batches = self.partials.read(task_id, moment, after) if with_partials else ()
            events = new_events(cursor, history.task, history.hops, batches, now=moment, is_whole=after is None)
            remaining = seconds - elapsed
            if events and events[-1].type == "final" and _awaits_hops(history, moment):
                final_seen = elapsed if final_seen is None else final_seen
                if remaining > 0 and elapsed - final_seen < HOP_GRACE_SECONDS:
                    events = events[:-1]
            if events or remaining <= 0:
                return events
            self.environment.sleep(min(POLL_SECONDS, remaining))
            polls += 1

    def _history(self, task_id: str, now: datetime) -> _History | None:
        task_and_hops = self.tasks.read_with_hops(task_id, now)
        return _History(*task_and_hops) if task_and_hops else None


def _first_mark(cursor: StreamCursor | None) -> PartialKey | None:
    """Return the partial after which nearly all new ones are."""
    if cursor is None or not cursor.partials:
        return None
    return PartialKey(cursor.generation, *cursor.partials[-_RECENT_RUNS:][0])


def _has_stopped_unseen(task: TaskView, cursor: StreamCursor | None) -> bool:
    return task.is_at_rest and (cursor is None or not has_state(cursor, task))


def _awaits_hops(history: _History, now: datetime) -> bool:
    is_recent = now - parse_time(history.task.updated_at) < _RECENT
    return is_recent and has_unfinished_hops(history.task, history.hops)
