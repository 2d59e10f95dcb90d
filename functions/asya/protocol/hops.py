"""The hops of a task: their records, and the progress that the records add up to (`protocol §13`).

Each attempt at a hop has up to three records, one for each stage, and one for the last problem of its infrastructure.
A write replaces the record of its own stage only and reads nothing before. So late, reordered and repeated reports cannot
set a task back. The records of a running job are the exception: an older note on the run replaces no newer one.
Reports about one attempt that arrive together make one record, but for a heartbeat.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from asya.protocol import states
from asya.protocol.envelope import Route, progress_percent
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
from asya.protocol.run_progress import RunNote

Stage = Literal["received", "start", "done", "problem"]

_STAGES: dict[str, Stage] = {states.RECEIVED: states.RECEIVED, states.PROCESSING: "start", states.COMPLETED: "done"}
_ORDER: dict[str, int] = {states.RECEIVED: 0, "start": 1, "done": 2}

# A record holds the names of the actors before it only up to this many characters; otherwise the records of a long loop
# would grow with each hop. Earlier records hold the names too.
PREV_LIMIT = 256


class HopKey(NamedTuple):
    """An attempt at a hop."""

    generation: int
    position: int
    attempt: int


class HopRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of one attempt at a hop.

    Attributes:
        percent: the progress of the task at this stage; 0 at the stage `problem`.
        curr: the logical name in the route, if an override sent the envelope to another actor.
        prev: None if the list is longer than `PREV_LIMIT`.
        at: the time of the latest report in this record.
        message_size_kb, duration_ms: as reported, in kilobytes and milliseconds.
        trace_id: of a trace that X-Ray gets.
        run: the latest progress of the job run, on hops of heavy actors.
        problem: what keeps the envelope on its queue; only of the stage `problem`, which has no times of its own.
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
    trace_id: str | None = None
    run: RunNote | None = None
    problem: TaskProblem | None = None

    @property
    def key(self) -> HopKey:
        """The attempt at the hop that this record belongs to."""
        return HopKey(self.generation, self.position, self.attempt)

    @property
    def note_at(self) -> str | None:
        """The time of its note while a job runs: of two records with one, only the later counts; None without one."""
        return self.run.at if self.run is not None and self.stage == "start" else None

    @property
    def has_own_item(self) -> bool:
        """Whether a later record of this stage replaces it in the table: the latest note or problem counts."""
        return self.note_at is not None or self.stage == "problem"

    @property
    def is_whole(self) -> bool:
        """Whether it has the time of its stage and of each earlier one."""
        times = (self.received_at, self.processing_at, self.completed_at)
        return self.stage in _ORDER and all(times[: _ORDER[self.stage] + 1])

    @property
    def name(self) -> str:
        """The actor's name in the route."""
        return self.curr or self.actor


def is_step(event: TaskEvent) -> bool:
    """Whether a report has a hop record that proves a step of its task."""
    return event.status in states.PROGRESS and event.data.retry is None and event.data.problem is None


def hop_records(events: Iterable[TaskEvent]) -> list[HopRecord]:
    """The records for these reports: one for each attempt at a hop, one for its last problem, and one for its heartbeat.

    Reports that are not progress are left out, and so are retries, which the record of the task holds.
    """
    steps_or_problems = (event for event in events if event.status in states.PROGRESS and event.data.retry is None)
    progress = sorted(steps_or_problems, key=_attempt_key)
    records: list[HopRecord] = []
    for _, group in groupby(progress, key=_attempt_key):
        reports = list(group)
        steps = [event for event in reports if event.data.problem is None]
        problems = [event for event in reports if event.data.problem is not None]
        records += _records(steps) if steps else []
        records += [_problem_record(max(problems, key=lambda event: event.at))] if problems else []
    return records


def _records(steps: list[TaskEvent]) -> list[HopRecord]:
    """One record, or two: the next heartbeat replaces a record with one, which must not take the time of the receipt with it."""
    record = _record(steps)
    if record.note_at is None or record.received_at is None:
        return [record]
    return [_record([each for each in steps if (each.status == states.RECEIVED) is first]) for first in (True, False)]


def _problem_record(event: TaskEvent) -> HopRecord:
    """The record of a problem. It proves no step and no progress, and the next report of the task outdates it."""
    without_times = {"received_at": None, "processing_at": None, "completed_at": None, "duration_ms": None}
    return replace(_record([event]), stage="problem", percent=0, problem=event.data.problem, **without_times)


def _attempt_key(event: TaskEvent) -> tuple[str, int, int, int]:
    return (event.id, event.generation, event.position, event.attempt)


def _record(events: list[TaskEvent]) -> HopRecord:
    ordered = sorted(events, key=_report_key)
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
        received_at=times.get(states.RECEIVED),
        processing_at=times.get(states.PROCESSING),
        completed_at=times.get(states.COMPLETED),
        message_size_kb=_last_value(event.data.message_size_kb for event in ordered),
        duration_ms=_last_value(event.data.duration_ms for event in ordered),
        trace_id=next((event.data.trace_id for event in ordered if event.data.trace_id), None),
        run=next((event.data.run for event in reversed(ordered) if event.data.run), None),
    )


def _report_key(event: TaskEvent) -> tuple[int, str, str]:
    """All reports of a running job have the time of its start; the times of their notes order them."""
    return (_ORDER[_STAGES[event.status]], event.at, event.data.run.at if event.data.run else "")


def _last_value(values: Iterable[float | None]) -> float | None:
    return next((value for value in reversed(list(values)) if value is not None), None)


class HopFold:
    """The sum of the hops of one generation. Memory grows only by one actor name for each position.

    Attributes:
        percent: the highest progress of any record, so it never decreases.
        latest: the record of the furthest stage; None without any record.
    """

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.percent = 0
        self.latest: HopRecord | None = None
        self._latest_problem: HopRecord | None = None
        self._latest_at = ""
        self._actors: dict[int, tuple[int, str]] = {}

    def add(self, hop: HopRecord) -> None:
        """Add one record; records of other generations are ignored."""
        if hop.generation != self.generation:
            return
        self.percent = max(self.percent, hop.percent)
        if hop.stage == "problem":
            if self._latest_problem is None or hop.at > self._latest_problem.at:
                self._latest_problem = hop
            return
        self._latest_at = max(self._latest_at, hop.at)
        if self.latest is None or _progress_key(hop) > _progress_key(self.latest):
            self.latest = hop
        self._actors[hop.position] = max(self._actors.get(hop.position, (0, "")), (hop.attempt, hop.name))

    def is_waiting_for(self, position: int, attempt: int) -> bool:
        """Whether this attempt has not begun, and neither has any later one."""
        return self.latest is None or (self.latest.position, self.latest.attempt) < (position, attempt)

    def has_passed(self, position: int, attempt: int) -> bool:
        """Whether this attempt, or a later one, has given its first frame, or the envelope is at a later hop."""
        if self.latest is None:
            return False
        latest = self.latest.position, self.latest.attempt
        return latest > (position, attempt) or (latest == (position, attempt) and self.latest.stage == "done")

    @property
    def last_at(self) -> str:
        """The time of the latest report of any hop, also of a problem; empty without any."""
        return max(self._latest_at, self._latest_problem.at if self._latest_problem is not None else "")

    @property
    def problem(self) -> TaskProblem | None:
        """What keeps the envelope on its queue now; a later report of any hop clears it."""
        record = self._latest_problem
        return record.problem if record is not None and record.at >= self._latest_at else None

    def route(self, known: Route | None) -> Route | None:
        """The route at the latest hop.

        Args:
            known: the route of the task record, for actors without a hop record.
        """
        if self.latest is None:
            return known
        prev = self.latest.prev if self.latest.prev is not None else tuple(self._prev(self.latest.position, known))
        return Route(prev, self.latest.name, self.latest.next)

    def _prev(self, position: int, known: Route | None) -> Iterator[str]:
        fallback = (*known.prev, known.curr) if known else ()
        for index in range(position):
            if index in self._actors:
                yield self._actors[index][1]
            else:
                yield fallback[index] if index < len(fallback) else ""


def _progress_key(hop: HopRecord) -> tuple[int, int, int, str]:
    return (hop.position, hop.attempt, _ORDER[hop.stage], hop.at)


def fold(hops: Iterable[HopRecord], generation: int = 0) -> HopFold:
    """Add up the hop records of a generation."""
    total = HopFold(generation)
    for hop in hops:
        total.add(hop)
    return total
