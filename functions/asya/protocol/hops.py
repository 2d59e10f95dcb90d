"""A task's hops as its reports tell them: what is kept of each, and what they add up to (`protocol §13`).

A hop is kept in up to three parts, one per stage, each written blindly and never changed by a report of another stage.
So no order and no repetition of reports can take a task back, and nothing has to be read before it is written. Reports
about one hop that come together make one part.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec

from asya.protocol.events import PROGRESS_STATUSES, TaskEvent
from asya.protocol.route import Route, progress_percent
from asya.protocol.run_progress import RunNote

Stage = Literal["received", "start", "done"]

_STAGES: dict[str, Stage] = {"received": "received", "processing": "start", "completed": "done"}
_ORDER: dict[str, int] = {"received": 0, "start": 1, "done": 2}

# Names of actors already done are not repeated with every hop once they would outgrow it: in a long loop the parts would
# cost more and more. They are found again in the earlier hops.
PREV_LIMIT = 256


class HopKey(NamedTuple):
    """An attempt at a hop."""

    generation: int
    position: int
    attempt: int


class HopRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of one attempt at one hop.

    Attributes:
        percent: how far this says the task is.
        curr: the name the route has for the actor, where an override made another do its work.
        prev: None where it was too long to be kept here.
        at: when the last of the reports in it was made.
        message_size_kb, duration_ms: as reported; kilobytes, milliseconds.
        run: the job run that a heavy actor's hop is in, as last told.
    """

    id: str
    generation: int
    position: int
    attempt: int
    stage: Stage
    actor: str
    percent: int
    at: str
    curr: str | None = None
    next: tuple[str, ...] = ()
    prev: tuple[str, ...] | None = None
    received_at: str | None = None
    processing_at: str | None = None
    completed_at: str | None = None
    message_size_kb: float | None = None
    duration_ms: float | None = None
    run: RunNote | None = None

    @property
    def key(self) -> HopKey:
        """Which attempt at which hop it is part of."""
        return HopKey(self.generation, self.position, self.attempt)

    @property
    def name(self) -> str:
        """The actor's name in the route."""
        return self.curr or self.actor


def hop_records(events: Iterable[TaskEvent]) -> list[HopRecord]:
    """The parts to write for these reports: one per attempt at a hop, whatever else is among them."""
    told = sorted((event for event in events if event.status in PROGRESS_STATUSES), key=_attempt_at)
    return [_joined(list(reports)) for _, reports in groupby(told, key=_attempt_at)]


def _attempt_at(event: TaskEvent) -> tuple[str, int, int, int]:
    return (event.id, event.generation, event.position, event.attempt)


def _joined(events: list[TaskEvent]) -> HopRecord:
    ordered = sorted(events, key=lambda event: (_ORDER[_STAGES[event.status]], event.at))
    times = {event.status: event.at for event in ordered}
    last = ordered[-1]
    route = next((event.data.route for event in reversed(ordered) if event.data.route), Route((), "", ()))
    actor = last.data.actor or route.curr
    return HopRecord(
        id=last.id,
        generation=last.generation,
        position=last.position,
        attempt=last.attempt,
        stage=_STAGES[last.status],
        actor=actor,
        percent=max(progress_percent(event.data.route or route, event.status) for event in ordered),
        at=max(times.values()),
        curr=route.curr if route.curr != actor else None,
        next=route.next,
        prev=route.prev if sum(map(len, route.prev)) <= PREV_LIMIT else None,
        received_at=times.get("received"),
        processing_at=times.get("processing"),
        completed_at=times.get("completed"),
        message_size_kb=_last_said(event.data.message_size_kb for event in ordered),
        duration_ms=_last_said(event.data.duration_ms for event in ordered),
        run=next((event.data.run for event in reversed(ordered) if event.data.run), None),
    )


def _last_said(values: Iterable[float | None]) -> float | None:
    return next((value for value in reversed(list(values)) if value is not None), None)


class HopFold:
    """What the hops of one generation add up to, taken one by one: memory does not grow but by names of actors.

    Attributes:
        percent: the furthest any hop has said; so it never decreases.
        latest: the part that tells where the task is; None if no hop has been reported.
    """

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.percent = 0
        self.latest: HopRecord | None = None
        self._actors: dict[int, tuple[int, str]] = {}

    def add(self, hop: HopRecord) -> None:
        """Take one part into account; parts of other generations are of no consequence."""
        if hop.generation != self.generation:
            return
        self.percent = max(self.percent, hop.percent)
        if self.latest is None or _place(hop) > _place(self.latest):
            self.latest = hop
        self._actors[hop.position] = max(self._actors.get(hop.position, (0, "")), (hop.attempt, hop.name))

    def route(self, known: Route | None) -> Route | None:
        """The route at the latest hop.

        Args:
            known: the record's route, for names of actors that no hop tells.
        """
        if self.latest is None:
            return known
        prev = self.latest.prev if self.latest.prev is not None else tuple(self._prev(self.latest.position, known))
        return Route(prev, self.latest.name, self.latest.next)

    def _prev(self, position: int, known: Route | None) -> Iterator[str]:
        first = (*known.prev, known.curr) if known else ()
        for index in range(position):
            if index in self._actors:
                yield self._actors[index][1]
            else:
                yield first[index] if index < len(first) else ""


def _place(hop: HopRecord) -> tuple[int, int, int, str]:
    return (hop.position, hop.attempt, _ORDER[hop.stage], hop.at)


def fold(hops: Iterable[HopRecord], generation: int = 0) -> HopFold:
    """Add up the hops of a generation."""
    total = HopFold(generation)
    for hop in hops:
        total.add(hop)
    return total
