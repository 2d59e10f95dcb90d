"""What is new of a task since what was shown of it (`protocol §13`, `GET …/events`; `§7`, FLY).

Every step of every hop is shown once, as is every change of the task's status and every message of a handler; a hop that is
told late is shown late. Steps of a hop come in order, and so do messages within a hop, those between its
start and its end; progress never decreases. `final` comes once, last, and is the whole record.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice

from msgspec import UNSET
from msgspec.structs import replace as changed

from asya.gateway.streams.stream_cursor import (
    FINAL,
    FRESH,
    PENDING,
    RUNNING,
    Cell,
    PartialMark,
    StreamCursor,
    paused_state,
)
from asya.protocol.events import TERMINAL_STATUSES, Progress
from asya.protocol.hops import HopRecord
from asya.protocol.route import Route, progress_percent
from asya.protocol.run_progress import RunNote
from asya.protocol.task import ViewStatus
from asya.protocol.times import parse_time
from asya.tasks.partials import Partial, PartialBatch
from asya.tasks.stream_events import StreamEventType, StreamPartial, StreamStatus
from asya.tasks.view import TaskView

MOST_ITEMS = 500
"""At once; the rest is news again the next time."""

MOST_SAID = 1024 * 1024
"""Bytes of handlers' messages that are taken into account at once, but for the last part of them."""

_STEPS: tuple[Progress, ...] = ("received", "processing", "completed")
_MESSAGES, _COMPLETED = 2, 3  # places within an attempt, behind received and processing


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of the stream.

    Attributes:
        shown: what has been shown once this has.
        task: the task as this shows it; None where it shows a handler's message.
    """

    event: StreamEventType
    shown: StreamCursor
    data: StreamStatus | StreamPartial | TaskView
    task: TaskView | None = None

    @property
    def id(self) -> str:
        """What has been shown, for `Last-Event-ID`."""
        return self.shown.encode()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt at a hop: how many of its steps are known to have happened, when each did, and what tells of it."""

    cell: Cell
    done: int
    at: tuple[str, ...]
    hops: tuple[HopRecord, ...]

    def percent(self, step: int) -> int:
        """How far the task is with a step."""
        prev = ("",) * self.cell[0]  # how many there are is all that counts
        return progress_percent(Route(prev, self.hops[step].name, self.hops[step].next), _STEPS[step])

    def route(self, step: int) -> Route | None:
        """The route at a step; None where the names of the actors before it are not kept with it."""
        hop = self.hops[step]
        return Route(hop.prev, hop.name, hop.next) if hop.prev is not None else None


def new_events(
    shown: StreamCursor | None,
    task: TaskView,
    hops: Iterable[HopRecord],
    partials: Iterable[PartialBatch] = (),
    most: int = MOST_ITEMS,
) -> tuple[StreamEvent, ...]:
    """What is to be shown now.

    Args:
        shown: what has been; None where nobody can tell: everything so far is shown as one, then.
        hops: the parts of the hops of the task's generation, in any order.
        partials: messages that are kept, in order; those shown before may be among them. No more are read than are shown.
        most: so many items at most.
    """
    attempts = list(_attempts(task.generation, hops))
    messages = _messages(task.generation, partials)
    known = _known(shown, task, attempts)
    if known is None:
        return (_snapshot(task, attempts, messages),)
    if known.state == FINAL and task.status in TERMINAL_STATUSES:
        return ()
    told = _Teller(task, known)
    told.resumption()
    unseen = (each for each in messages if not known.has_partial(each.mark))
    some = list(_bounded(unseen, most))
    for tell in _in_order(told, attempts, some):
        tell()
        if len(told.items) >= most:
            return tuple(told.items)
    if next(unseen, None) is None:
        told.standing()
    return tuple(told.items[:most])


@dataclass(frozen=True, slots=True)
class _Message:
    """A handler's message, and where it was said."""

    part: PartialBatch
    said: Partial

    @property
    def mark(self) -> PartialMark:
        return PartialMark(self.part.position, self.part.attempt, self.part.receive, self.said.sequence)


def _messages(generation: int, parts: Iterable[PartialBatch]) -> Iterator[_Message]:
    for part in parts:
        if part.generation == generation:
            yield from (_Message(part, said) for said in part.messages)


def _bounded(messages: Iterator[_Message], most: int) -> Iterator[_Message]:
    size = 0
    for message in islice(messages, most):
        yield message
        size += len(bytes(message.said.data))
        if size >= MOST_SAID:
            return


def has_unfinished_hops(task: TaskView, hops: Collection[HopRecord]) -> bool:
    """Whether a task succeeded, as far as one knows, before all its hops were done; word of those is on its way then."""
    if task.status != "succeeded" or task.route is None:
        return False
    last = len(task.route.prev) - (0 if task.route.curr else 1)
    positions = {hop.position for hop in hops}
    done = {hop.position for hop in hops if hop.completed_at}
    # A redriven task has begun somewhere on its way.
    return not done.issuperset(range(min(positions, default=last), last + 1))


def _known(shown: StreamCursor | None, task: TaskView, attempts: list[_Attempt]) -> StreamCursor | None:
    if shown is None:
        return None
    if shown.is_fresh:
        return StreamCursor(generation=task.generation)
    if shown.generation != task.generation:
        return None
    return shown.unsettled(_present(attempts))


def _present(attempts: Iterable[_Attempt]) -> dict[Cell, int]:
    return {attempt.cell: attempt.done for attempt in attempts}


def _attempts(generation: int, hops: Iterable[HopRecord]) -> Iterator[_Attempt]:
    """The attempts, first to last. Who has completed a hop has begun it, whether or not anybody said so."""
    of_generation = sorted((hop for hop in hops if hop.generation == generation), key=lambda hop: hop.key)
    for place, of_attempt in groupby(of_generation, key=lambda hop: hop.key):
        told = sorted(of_attempt, key=_furthest)
        done = _furthest(told[-1])
        at: list[str] = []
        by: list[HopRecord] = []
        for step in reversed(range(done)):
            told_at, hop = min(
                ((told_at, hop) for hop in told if (told_at := _times(hop)[step])),
                key=lambda each: each[0],
                default=(at[-1] if at else told[-1].at, by[-1] if by else told[-1]),
            )
            at.append(told_at)
            by.append(hop)
        yield _Attempt((place.position, place.attempt), done, tuple(reversed(at)), tuple(reversed(by)))


def _times(hop: HopRecord) -> tuple[str | None, ...]:
    return (hop.received_at, hop.processing_at, hop.completed_at)


def _furthest(hop: HopRecord) -> int:
    """How many steps a part of a hop tells of."""
    return max((number for number, at in enumerate(_times(hop), 1) if at), default=1)


def _in_order(
    told: "_Teller", attempts: Iterable[_Attempt], messages: Iterable[_Message]
) -> Iterator[Callable[[], None]]:
    """What to tell of hops and messages, first to last."""
    order: list[tuple[tuple[int, ...], Callable[[], None]]] = []
    for attempt in attempts:
        for step in range(told.shown.steps.get(attempt.cell, 0), attempt.done):
            within = _COMPLETED if _STEPS[step] == "completed" else step
            order.append(((*attempt.cell, within), partial(told.step, attempt, step)))
    for message in messages:
        position, *run = message.mark
        order.append(((position, run[0], _MESSAGES, *run[1:]), partial(told.message, message)))
    return (tell for _, tell in sorted(order, key=lambda each: each[0]))


class _Teller:
    """Tells one thing after the other, and keeps what has been shown."""

    def __init__(self, task: TaskView, shown: StreamCursor) -> None:
        self._task = task
        self.shown = shown
        self.items: list[StreamEvent] = []

    def resumption(self) -> None:
        """A pause that is over: what comes now happens behind it."""
        if self.shown.state.startswith("w") and self._task.status == "running":
            self._tell_status(RUNNING, "running")

    def step(self, attempt: _Attempt, step: int) -> None:
        """A step of a hop; that it is told late does not end a pause that the task is in."""
        hop, name = attempt.hops[step], _STEPS[step]
        is_in_pause = self.shown.state == _state(self._task) and self._task.status == "paused"
        status: ViewStatus = "paused" if is_in_pause else "running"
        percent = max(self.shown.percent, attempt.percent(step))
        run = hop.run if name != "received" else None
        shown = replace(
            self.shown.with_steps(attempt.cell, step + 1),
            state=self.shown.state if is_in_pause else RUNNING,
            percent=percent,
            run_at=max(self.shown.run_at, _milliseconds(run)),
        )
        data = StreamStatus(
            id=self._task.id,
            status=status,
            progress_percent=percent,
            generation=hop.generation,
            at=attempt.at[step],
            step=name,
            actor=hop.actor,
            route=attempt.route(step),
            position=hop.position,
            attempt=hop.attempt,
            message_size_kb=hop.message_size_kb if name == "received" else None,
            duration_ms=hop.duration_ms if name == "completed" else None,
            run=run,
        )
        self._tell(StreamEvent("status", shown, data, self._as_shown(data)))

    def message(self, message: _Message) -> None:
        """What a handler said, unless that or what it said later has been shown."""
        if self.shown.has_partial(message.mark):
            return
        part, said = message.part, message.said
        data = StreamPartial(
            id=self._task.id,
            actor=part.actor,
            generation=part.generation,
            position=part.position,
            attempt=part.attempt,
            receive=part.receive,
            sequence=said.sequence,
            at=said.at,
            data=said.data,
        )
        self._tell(StreamEvent("partial", self.shown.with_partial(message.mark), data))

    def standing(self) -> None:
        """How the task stands behind all that."""
        task, state = self._task, _state(self._task)
        has_changed = state != self.shown.state and (state != PENDING or self.shown.state == FRESH)
        if state == FINAL:
            self._tell(_final(task, replace(self.shown, state=FINAL)))
        elif has_changed or (state == RUNNING and _milliseconds(task.run) > self.shown.run_at):
            self._tell_status(state, task.status)

    def _tell_status(self, state: str, status: ViewStatus) -> None:
        self._tell(_status_item(changed(self._task, status=status), replace(self.shown, state=state)))

    def _as_shown(self, data: StreamStatus) -> TaskView:
        return changed(
            self._task,
            status=data.status,
            progress_percent=data.progress_percent,
            actor=data.actor,
            route=data.route or self._task.route,
            attempt=data.attempt,
            updated_at=data.at,
            **_WITHOUT_END,
        )

    def _tell(self, item: StreamEvent) -> None:
        self.items.append(item)
        self.shown = item.shown


_WITHOUT_END = {"result": UNSET, "result_uri": None, "error": None, "reason": None}


def _status_item(task: TaskView, shown: StreamCursor, *, is_snapshot: bool = False) -> StreamEvent:
    percent = max(shown.percent, task.progress_percent)
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
        pause=task.pause,
        is_snapshot=is_snapshot,
    )
    now_shown = replace(shown, percent=percent, run_at=max(shown.run_at, _milliseconds(task.run)))
    return StreamEvent("status", now_shown, data, changed(task, progress_percent=percent))


def _final(task: TaskView, shown: StreamCursor) -> StreamEvent:
    percent = max(shown.percent, task.progress_percent)
    told = changed(task, progress_percent=percent)
    return StreamEvent("final", replace(shown, percent=percent), told, told)


def _snapshot(task: TaskView, attempts: list[_Attempt], messages: Iterable[_Message]) -> StreamEvent:
    shown = StreamCursor(generation=task.generation, state=_state(task), steps=_present(attempts))
    for message in messages:
        if not shown.has_partial(message.mark):
            shown = shown.with_partial(message.mark)
    return _final(task, shown) if shown.state == FINAL else _status_item(task, shown, is_snapshot=True)


def _state(task: TaskView) -> str:
    if task.status in TERMINAL_STATUSES:
        return FINAL
    if task.status == "paused":
        return paused_state(task.pause.since if task.pause else "")
    return PENDING if task.status == "pending" else RUNNING


def _milliseconds(run: RunNote | None) -> int:
    return max(0, round(parse_time(run.at).timestamp() * 1000)) if run else 0
