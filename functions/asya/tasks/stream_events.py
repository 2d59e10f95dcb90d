"""The events of a task's stream, and partials in batches for storage (`protocol §7`, FLY; `§13`, stream).

A batch holds consecutive partials of one run of a hop, because the table charges for each write. Batches may overlap:
reports that come again may come together with others.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.protocol.envelope import Route
from asya.protocol.events import PartialEvent
from asya.protocol.pause import TaskPause
from asya.protocol.run_progress import RunNote
from asya.protocol.states import Progress, ViewStatus
from asya.tasks.view import RetryView

# Bytes of partials in one batch; a table item may have 400 KB.
BATCH_SIZE_LIMIT = 200 * 1024


class PartialKey(NamedTuple):
    """The key of a partial; keys sort in the order of publication."""

    generation: int
    position: int
    attempt: int
    receive: int
    sequence: int


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """One partial; `sequence` counts the partials of its run of the hop from 0."""

    sequence: int
    at: str
    data: Raw


class PartialBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive partials of one run of a hop.

    Attributes:
        receive: separates the runs of one attempt, because a redelivered hop publishes its partials again.
        stored_at: when the table got the batch, in seconds since 1970; 0 before.
    """

    id: str
    generation: int
    position: int
    attempt: int
    receive: int
    actor: str
    messages: tuple[Partial, ...]
    stored_at: int = 0

    @property
    def key(self) -> PartialKey:
        """The key of the first partial."""
        return PartialKey(self.generation, self.position, self.attempt, self.receive, self.messages[0].sequence)


def partial_batches(events: Iterable[PartialEvent]) -> Iterator[PartialBatch]:
    """Group partials into batches, ordered within each run and without duplicates."""
    for run, run_events in groupby(sorted(events, key=_sort_key), key=_run):
        by_sequence = {event.sequence: event for event in run_events}
        task_id, generation, position, attempt, receive = run
        for batch in _consecutive(by_sequence.values()):
            yield PartialBatch(
                id=task_id,
                generation=generation,
                position=position,
                attempt=attempt,
                receive=receive,
                actor=batch[0].actor,
                messages=tuple(Partial(sequence=event.sequence, at=event.at, data=event.data) for event in batch),
            )


def _consecutive(events: Iterable[PartialEvent]) -> Iterator[list[PartialEvent]]:
    batch: list[PartialEvent] = []
    size = 0
    for event in events:
        length = len(bytes(event.data)) + 128
        if batch and (size + length > BATCH_SIZE_LIMIT or event.sequence != batch[-1].sequence + 1):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += length
    if batch:
        yield batch


def _run(event: PartialEvent) -> tuple[str, int, int, int, int]:
    return (event.id, event.generation, event.position, event.attempt, event.receive)


def _sort_key(event: PartialEvent) -> tuple[str, int, int, int, int, int]:
    return (*_run(event), event.sequence)


StreamEventType = Literal["status", "partial", "final"]


class StreamStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress at a hop, or a change of the task's status; the final event is the whole view instead.

    Attributes:
        status: the current status of the task, also for a step that is reported late.
        progress_percent: never lower than in an earlier event.
        step: the progress at the hop; None if the task as a whole changed.
        at: the time of the change.
        message_size_kb, duration_ms: kilobytes and milliseconds, as reported.
        is_snapshot: whether the event replaces all earlier ones, because the cursor does not name them exactly.
    """

    id: str
    status: ViewStatus
    progress_percent: int
    generation: int
    at: str
    step: Progress | None = None
    actor: str | None = None
    route: Route | None = None
    position: int | None = None
    attempt: int | None = None
    message_size_kb: float | None = None
    duration_ms: float | None = None
    run: RunNote | None = None
    retry: RetryView | None = None
    pause: TaskPause | None = None
    waiting_until: str | None = None
    is_snapshot: bool = msgspec.field(default=False, name="snapshot")


class StreamPartial(msgspec.Struct, frozen=True, kw_only=True):
    """A partial of a handler.

    Attributes:
        receive: separates the runs of one attempt, because a redelivered hop publishes its partials again.
        sequence: the number of the partial within its run, from 0.
        missed: the number of partials right before it that the stream passes over, because they came too late or never.
    """

    id: str
    actor: str
    generation: int
    position: int
    attempt: int
    receive: int
    sequence: int
    at: str
    data: Raw
    missed: int | UnsetType = UNSET
