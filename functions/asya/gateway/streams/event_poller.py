"""Waiting for what is new of a task: the common part of the stream and of whatever else follows tasks (`protocol §13`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from asya.gateway.streams.new_events import StreamEvent, has_unfinished_hops, new_events
from asya.gateway.streams.stream_cursor import StreamCursor
from asya.messaging.lambdas.environment import Environment
from asya.protocol.hops import HopRecord
from asya.protocol.times import parse_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.partials import PartialBatch, PartialKey
from asya.tasks.view import TaskView

POLL_SECONDS = 0.4
"""Between one look and the next: what a handler says is to be seen within a second."""

HOP_GRACE_SECONDS = 1.0
"""How long the end of a task waits for that of its last hops, which their sidecars tell at the same time."""

_JUST_NOW = timedelta(minutes=1)

# A history longer than this many parts of hops is not read at every look, and what was said before only now and then.
_LONG_HISTORY = 100
_LOOKS_BETWEEN = 5


class PartialReader(Protocol):
    """Where handlers' messages are kept."""

    def read(self, task_id: str, now: datetime, after: PartialKey | None = None) -> Iterator[PartialBatch]:
        """See `asya.tasks.aws.partials.PartialStore`."""


@dataclass(frozen=True, slots=True)
class _History:
    """What is known of a task beside what its handlers say."""

    task: TaskView
    hops: tuple[HopRecord, ...]


@dataclass(frozen=True, slots=True)
class EventPoller:
    """Looks at tasks until there is something new of them."""

    tasks: Tasks
    partials: PartialReader
    environment: Environment

    def poll(
        self, task_id: str, shown: StreamCursor | None, now: datetime, seconds: float, *, with_partials: bool = True
    ) -> tuple[StreamEvent, ...]:
        """What is new, as soon as anything is; nothing when the time is up, or if there is no such task.

        Args:
            shown: what has been shown; None where nobody can tell.
            now: when the waiting begins.
            with_partials: whether what handlers say is news.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        began = self.environment.monotonic()
        history: _History | None = None
        ended: float | None = None
        look = 0
        while True:
            waited = self.environment.monotonic() - began
            moment = now + timedelta(seconds=waited)
            if history is None or len(history.hops) <= _LONG_HISTORY or look % _LOOKS_BETWEEN == 0:
                history = self._history(task_id, moment)
            if history is None:
                return ()
            after = _last_said(shown) if look % _LOOKS_BETWEEN else None
            partials = self.partials.read(task_id, moment, after) if with_partials else ()
            items = new_events(shown, history.task, history.hops, partials)
            left = seconds - waited
            if items and items[-1].event == "final" and _comes_too_soon(history, moment):
                ended = waited if ended is None else ended
                if left > 0 and waited - ended < HOP_GRACE_SECONDS:
                    items = items[:-1]
            if items or left <= 0:
                return items
            self.environment.sleep(min(POLL_SECONDS, left))
            look += 1

    def _history(self, task_id: str, now: datetime) -> _History | None:
        found = self.tasks.read_with_hops(task_id, now)
        return _History(*found) if found else None


def _last_said(shown: StreamCursor | None) -> PartialKey | None:
    """The message behind which nearly everything new is; what is said late in earlier hops is found at the next full look."""
    if shown is None or not shown.partials:
        return None
    return PartialKey(shown.generation, *shown.partials[0])


def _comes_too_soon(history: _History, now: datetime) -> bool:
    just_now = now - parse_time(history.task.updated_at) < _JUST_NOW
    return just_now and has_unfinished_hops(history.task, history.hops)
