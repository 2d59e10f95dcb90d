"""Selects the new events of a task, with its attempts at hops (`protocol §13`, `GET …/events`; `§7`, FLY).

A stream shows each step of each hop once, and so each change of the task's status and each partial. A hop that is
reported late is shown late. Steps of a hop come in order, with its partials between start and end. Progress never
decreases. `final` comes last, and holds the whole task. It comes a second time if another
end replaces a provisional one or a cancellation.

Partials are stored in any order. A gap in the sequence of a run holds back the partials behind it, and the end or the
pause of the task. The hold counts from when they were stored, so it outlasts connections.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial as bind
from itertools import groupby, islice

from msgspec import UNSET
from msgspec.structs import replace as replace_fields

from asya.gateway.streams.stream_cursor import (
    CANCELED,
    EMPTY,
    FINAL,
    PENDING,
    PROVISIONAL,
    RUNNING,
    AttemptKey,
    PartialMark,
    StreamCursor,
    paused_state,
)
from asya.protocol import states
from asya.protocol.envelope import Route, progress_percent
from asya.protocol.hops import HopRecord
from asya.protocol.run_progress import RunNote
from asya.protocol.states import Progress, ViewStatus
from asya.protocol.times import parse_time
from asya.tasks.stream_events import Partial, PartialBatch, StreamEventType, StreamPartial, StreamStatus
from asya.tasks.view import TaskView

STEPS: tuple[Progress, ...] = (states.RECEIVED, states.PROCESSING, states.COMPLETED)


@dataclass(frozen=True, slots=True)
class HopAttempt:
    """One attempt at a hop.

    Attributes:
        done: The number of its steps that happened.
        times: The time of each of these steps.
        sources: The hop record that describes each of these steps.
    """

    key: AttemptKey
    done: int
    times: tuple[str, ...]
    sources: tuple[HopRecord, ...]

    def percent(self, step: int) -> int:
        """Return the progress of the task at a step."""
        position, _ = self.key
        source = self.sources[step]
        # Only the length of `prev` counts.
        return progress_percent(Route(("",) * position, source.name, source.next), STEPS[step])

    def route(self, step: int) -> Route | None:
        """Return the route at a step; None if its record does not hold the earlier actors."""
        source = self.sources[step]
        return Route(source.prev, source.name, source.next) if source.prev is not None else None


def group_attempts(generation: int, hops: Iterable[HopRecord]) -> Iterator[HopAttempt]:
    """Yield the attempts of one generation, first to last.

    A step proves the steps before it, also when their reports are missing. A missing time is that of the next step.
    """
    steps = (hop for hop in hops if hop.generation == generation and hop.stage != "problem")
    of_generation = sorted(steps, key=lambda hop: hop.key)
    for key, records in groupby(of_generation, key=lambda hop: hop.key):
        by_progress = sorted(records, key=_step_count)
        last = by_progress[-1]
        done = _step_count(last)
        times: list[str] = []
        sources: list[HopRecord] = []
        for step in reversed(range(done)):
            time, source = min(
                ((time, hop) for hop in by_progress if (time := _times(hop)[step])),
                key=lambda reported: reported[0],
                default=(times[-1] if times else last.at, sources[-1] if sources else last),
            )
            times.append(time)
            sources.append(source)
        yield HopAttempt((key.position, key.attempt), done, tuple(reversed(times)), tuple(reversed(sources)))


def has_unfinished_hops(task: TaskView, hops: Collection[HopRecord]) -> bool:
    """Return whether a task succeeded before all its hops were reported as completed.

    The missing reports are then still on their way.
    """
    if not task.has_succeeded or task.route is None:
        return False
    last = len(task.route.prev) - (0 if task.route.curr else 1)
    positions = {hop.position for hop in hops}
    completed = {hop.position for hop in hops if hop.completed_at}
    # A redriven task starts in the middle of its route.
    return not completed.issuperset(range(min(positions, default=last), last + 1))


def _times(hop: HopRecord) -> tuple[str | None, ...]:
    return (hop.received_at, hop.processing_at, hop.completed_at)


def _step_count(hop: HopRecord) -> int:
    return max((number for number, time in enumerate(_times(hop), 1) if time), default=1)


MAX_EVENTS = 500
"""Events of one call; the next call returns the rest."""

MAX_PARTIAL_BYTES = 1024 * 1024
"""Bytes of partials in one call, and behind a gap; the last partial may exceed it."""

GAP_HOLD = timedelta(seconds=4)
"""How long a gap holds back a stored partial; 2 s pass at most until a poll reads all partials (`protocol §13.stream.gap`)."""

_PARTIALS, _COMPLETED = 2, 3
"""Sort keys within an attempt, after those of `received` (0) and `processing` (1)."""

_ENDS = (PROVISIONAL, CANCELED, FINAL)

_WITHOUT_END = {
    "result": UNSET,
    "result_uri": None,
    "error": None,
    "error_group": None,
    "reason": None,
    "provisional": False,
    "retry": None,
}


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream.

    Attributes:
        cursor: The stream cursor after this event.
        task: The task as this event shows it; None for a partial.
    """

    type: StreamEventType
    cursor: StreamCursor
    data: StreamStatus | StreamPartial | TaskView
    task: TaskView | None = None

    @property
    def id(self) -> str:
        """The encoded cursor, for `Last-Event-ID`."""
        return self.cursor.encode()


def new_events(
    cursor: StreamCursor | None,
    task: TaskView,
    hops: Iterable[HopRecord],
    batches: Iterable[PartialBatch] = (),
    limit: int = MAX_EVENTS,
    *,
    now: datetime,
    is_whole: bool = True,
) -> tuple[StreamEvent, ...]:
    """Return the events that follow a cursor.

    Args:
        cursor: The events that were shown; None if that is not known. The answer is then one snapshot.
        hops: The hop records of the task, in any order.
        batches: Stored partials in order, which may include shown ones. Only as many are read as are returned.
        limit: The maximum number of events.
        is_whole: Whether `batches` holds all stored partials; else no gap is passed, and no end or pause is shown.
    """
    attempts = list(group_attempts(task.generation, hops))
    partials = _partials(task.generation, batches)
    start = _start_cursor(cursor, task, attempts)
    hold = _GapHold(start or StreamCursor(), task, now, is_whole=is_whole)
    unseen = hold.passed(partials)
    if start is None:
        return (_snapshot(task, attempts, unseen),)
    if has_final(start, task):
        return ()
    events = _EventList(task, start)
    events.add_resumption()
    batch = list(_bounded(unseen, limit))
    for add in _in_order(events, attempts, batch):
        add()
        if len(events.items) >= limit:
            return tuple(events.items)
    if next(unseen, None) is None and not (hold.holds and task.is_at_rest):
        events.add_task_status()
    return tuple(events.items[:limit])


def has_final(cursor: StreamCursor, task: TaskView) -> bool:
    """Return whether the stream has shown the end of the task, as it is now."""
    return has_state(cursor, task) and cursor.state in _ENDS


def has_state(cursor: StreamCursor, task: TaskView) -> bool:
    """Return whether the stream has shown the state of the task, as it is now."""
    return cursor.generation == task.generation and cursor.state == _state(task)


@dataclass(frozen=True, slots=True)
class _StoredPartial:
    """A partial and the batch that holds it.

    Attributes:
        missed: The number of partials before it that the stream passes over.
    """

    batch: PartialBatch
    partial: Partial
    missed: int = 0

    @property
    def mark(self) -> PartialMark:
        return PartialMark(self.batch.position, self.batch.attempt, self.batch.receive, self.partial.sequence)


def _partials(generation: int, batches: Iterable[PartialBatch]) -> Iterator[_StoredPartial]:
    for batch in batches:
        if batch.generation == generation:
            yield from (_StoredPartial(batch, partial) for partial in batch.messages)


class _GapHold:
    """Holds back the partials behind a gap in the sequence of their run.

    Attributes:
        holds: Whether partials are held back; known after all were read.
    """

    def __init__(self, cursor: StreamCursor, task: TaskView, now: datetime, *, is_whole: bool) -> None:
        self._cursor = cursor
        self._is_whole = is_whole
        self._since = (now - GAP_HOLD).timestamp()
        # Partials that come after the end do not put it off for longer.
        self._is_over = task.is_at_rest and parse_time(task.updated_at).timestamp() <= self._since
        self.holds = not is_whole

    def passed(self, partials: Iterable[_StoredPartial]) -> Iterator[_StoredPartial]:
        """Yield the partials to show: those that were not shown, up to the first gap of their run that holds."""
        for run, of_run in groupby(partials, key=lambda each: each.mark.run):
            expected = self._cursor.next_sequence(run)
            if expected is not None:
                yield from self._passed_of_run(expected, of_run)

    def _passed_of_run(self, expected: int, partials: Iterable[_StoredPartial]) -> Iterator[_StoredPartial]:
        held: list[_StoredPartial] = []
        size = 0
        for each in partials:
            # Batches may overlap, if reports came twice.
            if each.mark.sequence <= (held[-1].mark.sequence if held else expected - 1):
                continue
            if each.mark.sequence > expected and not self._is_whole:
                return
            held.append(each)
            size += len(bytes(each.partial.data))
            if each.mark.sequence == expected or self._goes_on(each.batch) or size > MAX_PARTIAL_BYTES:
                for one in held:
                    yield replace(one, missed=one.mark.sequence - expected)
                    expected = one.mark.sequence + 1
                held, size = [], 0
        self.holds = self.holds or bool(held)

    def _goes_on(self, batch: PartialBatch) -> bool:
        return self._is_over or batch.stored_at <= self._since


def _bounded(partials: Iterator[_StoredPartial], limit: int) -> Iterator[_StoredPartial]:
    size = 0
    for each in islice(partials, limit):
        yield each
        size += len(bytes(each.partial.data))
        if size >= MAX_PARTIAL_BYTES:
            return


def _start_cursor(cursor: StreamCursor | None, task: TaskView, attempts: list[HopAttempt]) -> StreamCursor | None:
    """Return the cursor to continue from; None if it does not identify the shown events."""
    if cursor is None:
        return None
    if cursor.is_empty:
        return StreamCursor(generation=task.generation)
    if cursor.generation != task.generation:
        return None
    return cursor.expand(_step_counts(attempts))


def _step_counts(attempts: Iterable[HopAttempt]) -> dict[AttemptKey, int]:
    return {attempt.key: attempt.done for attempt in attempts}


def _in_order(
    events: "_EventList", attempts: Iterable[HopAttempt], partials: Iterable[_StoredPartial]
) -> Iterator[Callable[[], None]]:
    """Yield the calls that add the new steps and partials, first to last."""
    calls: list[tuple[tuple[int, ...], Callable[[], None]]] = []
    for attempt in attempts:
        for step in range(events.cursor.steps.get(attempt.key, 0), attempt.done):
            within = _COMPLETED if STEPS[step] == states.COMPLETED else step
            calls.append(((*attempt.key, within), bind(events.add_step, attempt, step)))
    for partial in partials:
        position, attempt_number, *rest = partial.mark
        calls.append(((position, attempt_number, _PARTIALS, *rest), bind(events.add_partial, partial)))
    return (call for _, call in sorted(calls, key=lambda keyed: keyed[0]))


class _EventList:
    """Collects the events of one call and advances the cursor with each."""

    def __init__(self, task: TaskView, cursor: StreamCursor) -> None:
        self._task = task
        self.cursor = cursor
        self.items: list[StreamEvent] = []

    def add_resumption(self) -> None:
        """Add the end of a pause, before everything that follows it."""
        if self.cursor.state.startswith("w") and self._task.is_running:
            self._add_status(RUNNING, states.RUNNING)

    def add_step(self, attempt: HopAttempt, step: int) -> None:
        """Add a step of a hop; a late step does not end the pause of a task."""
        source, name = attempt.sources[step], STEPS[step]
        is_in_pause = self.cursor.state == _state(self._task) and self._task.is_paused
        status: ViewStatus = states.PAUSED if is_in_pause else states.RUNNING
        percent = max(self.cursor.percent, attempt.percent(step))
        run = source.run if name != states.RECEIVED else None
        cursor = replace(
            self.cursor.with_steps(attempt.key, step + 1),
            state=self.cursor.state if is_in_pause else RUNNING,
            percent=percent,
            run_at=max(self.cursor.run_at, _milliseconds(run)),
        )
        data = StreamStatus(
            id=self._task.id,
            status=status,
            progress_percent=percent,
            generation=source.generation,
            at=attempt.times[step],
            step=name,
            actor=source.actor,
            route=attempt.route(step),
            position=source.position,
            attempt=source.attempt,
            message_size_kb=source.message_size_kb if name == states.RECEIVED else None,
            duration_ms=source.duration_ms if name == states.COMPLETED else None,
            run=run,
        )
        self._add(StreamEvent("status", cursor, data, self._task_at(data)))

    def add_partial(self, stored: _StoredPartial) -> None:
        """Add a partial, unless it or a later one of its run was shown."""
        if self.cursor.has_partial(stored.mark):
            return
        batch, partial = stored.batch, stored.partial
        data = StreamPartial(
            id=self._task.id,
            actor=batch.actor,
            generation=batch.generation,
            position=batch.position,
            attempt=batch.attempt,
            receive=batch.receive,
            sequence=partial.sequence,
            at=partial.at,
            data=partial.data,
            missed=stored.missed or UNSET,
        )
        self._add(StreamEvent("partial", self.cursor.with_partial(stored.mark), data))

    def add_task_status(self) -> None:
        """Add the current status of the task if it was not shown yet."""
        task, state = self._task, _state(self._task)
        has_changed = state != self.cursor.state and (state != PENDING or self.cursor.state == EMPTY)
        if state in _ENDS:
            self._add(_final(task, replace(self.cursor, state=state)))
        elif has_changed or (state == RUNNING and _noted_at(task) > self.cursor.run_at):
            self._add_status(state, task.status)

    def _add_status(self, state: str, status: ViewStatus) -> None:
        self._add(_status_event(replace_fields(self._task, status=status), replace(self.cursor, state=state)))

    def _task_at(self, data: StreamStatus) -> TaskView:
        return replace_fields(
            self._task,
            status=data.status,
            progress_percent=data.progress_percent,
            actor=data.actor,
            route=data.route or self._task.route,
            attempt=data.attempt,
            updated_at=data.at,
            **_WITHOUT_END,
        )

    def _add(self, event: StreamEvent) -> None:
        self.items.append(event)
        self.cursor = event.cursor


def _status_event(task: TaskView, cursor: StreamCursor, *, is_snapshot: bool = False) -> StreamEvent:
    percent = max(cursor.percent, task.progress_percent)
    data = StreamStatus(
        id=task.id,
        status=task.status,
        progress_percent=percent,
        generation=task.generation,
        at=task.updated_at,
        actor=task.actor,
        route=task.route,
        attempt=task.attempt,
        run=task.run,
        retry=task.retry,
        # A stream token lets its bearer read, and a link would let it answer.
        pause=task.pause and task.pause.shortened(),
        waiting_until=task.waiting_until,
        is_snapshot=is_snapshot,
    )
    advanced = replace(cursor, percent=percent, run_at=max(cursor.run_at, _noted_at(task)))
    return StreamEvent("status", advanced, data, replace_fields(task, progress_percent=percent))


def _final(task: TaskView, cursor: StreamCursor) -> StreamEvent:
    percent = max(cursor.percent, task.progress_percent)
    data = replace_fields(task, progress_percent=percent)
    return StreamEvent("final", replace(cursor, percent=percent), data, data)


def _snapshot(task: TaskView, attempts: list[HopAttempt], partials: Iterable[_StoredPartial]) -> StreamEvent:
    cursor = StreamCursor(generation=task.generation, state=_state(task), steps=_step_counts(attempts))
    for partial in partials:
        if not cursor.has_partial(partial.mark):
            cursor = cursor.with_partial(partial.mark)
    return _final(task, cursor) if cursor.state in _ENDS else _status_event(task, cursor, is_snapshot=True)


def _state(task: TaskView) -> str:
    if task.is_terminal:
        # An end that was claimed before the cancellation may still replace it.
        return PROVISIONAL if task.provisional else CANCELED if task.is_canceled else FINAL
    if task.is_paused:
        return paused_state(task.pause.since if task.pause else "")
    return PENDING if task.is_pending else RUNNING


def _noted_at(task: TaskView) -> int:
    """The time of the latest note on the job run of a task, or on its retry."""
    retried = parse_time(task.retry.failed_at).timestamp() if task.retry is not None else 0
    return max(_milliseconds(task.run), round(retried * 1000))


def _milliseconds(run: RunNote | None) -> int:
    return max(0, round(parse_time(run.at).timestamp() * 1000)) if run else 0
