"""The progress of each actor of a route, computed from successive views of a task. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from asya.protocol import states
from asya.protocol.envelope import progress_percent
from asya.protocol.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asya.tasks.view import TaskView


class Stage(StrEnum):
    """What an actor of the route does, as the command shows it."""

    WAITING = states.WAITING
    RECEIVED = states.RECEIVED
    PROCESSING = states.PROCESSING
    PAUSED = states.PAUSED
    DONE = states.DONE
    FAILED = states.FAILED


_STAGE_OF: dict[str, Stage] = {
    states.COMPLETED: Stage.DONE,
    states.PROCESSING: Stage.PROCESSING,
    states.RECEIVED: Stage.RECEIVED,
}


@dataclass(frozen=True)
class ActorLine:
    """One actor of the route.

    Attributes:
        began_at: When a view first showed the actor at work, in epoch seconds of the mesh's clock; None if no view did.
        seconds: The duration of an actor that is done; None if no view showed it at work.
    """

    actor: str
    stage: Stage = Stage.WAITING
    began_at: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Progress:
    """All actors of a route in order, and the task as a whole.

    Attributes:
        slices: The actors between fan-out and fan-in, with one line for all slices together.
        slices_at: The number of actors of the route before them.
    """

    lines: tuple[ActorLine, ...]
    percent: int = 0
    status: str = states.PENDING
    slices: tuple[ActorLine, ...] = ()
    slices_at: int = 0

    @classmethod
    def of(cls, route: Iterable[str], slices: Iterable[str] = (), slices_at: int = 0) -> Progress:
        """Return the progress at the start: all actors wait."""
        lines, slice_lines = (tuple(ActorLine(actor) for actor in actors) for actors in (route, slices))
        return cls(lines, slices=slice_lines, slices_at=slices_at)

    @property
    def all_lines(self) -> tuple[ActorLine, ...]:
        """All lines in display order, with the lines of slices before the fan-in actor."""
        return self.lines[: self.slices_at] + self.slices + self.lines[self.slices_at :]

    def after(self, task: TaskView) -> Progress:
        """Return the progress after another view of the task. Views may skip actors; a stage never goes back."""
        route = task.route
        if route is None:
            return replace(self, percent=task.progress_percent, status=task.status)
        names = (*route.prev, *((route.curr,) if route.curr else ()), *route.next)
        at = parse_time(task.updated_at).timestamp()
        current = len(route.prev)
        stage = _current_stage(task)
        lines = []
        for position, name in enumerate(names):
            previous = self.lines[position] if position < len(self.lines) else ActorLine(name)
            line = replace(previous, actor=name)
            if position < current:
                line = _advance(line, Stage.DONE, at)
            elif position == current:
                line = _advance(line, stage, at)
            lines.append(line)
        percent = max(self.percent, task.progress_percent)
        return replace(self, lines=tuple(lines), percent=percent, status=task.status)

    def after_slices(self, slices: Iterable[ActorLine]) -> Progress:
        """Return the progress with other lines of slices."""
        return replace(self, slices=tuple(slices) or self.slices)


def _current_stage(task: TaskView) -> Stage:
    if task.has_succeeded:
        return Stage.DONE
    if task.has_ended_badly:
        return Stage.FAILED
    if task.is_paused:
        return Stage.PAUSED
    assert task.route is not None
    # The record has no stage of the actor, so the percentage tells it.
    for status, stage in _STAGE_OF.items():
        if task.progress_percent >= progress_percent(task.route, status):
            return stage
    return Stage.WAITING


_ORDER = {
    Stage.WAITING: 0,
    Stage.RECEIVED: 1,
    Stage.PROCESSING: 2,
    Stage.PAUSED: 3,
    Stage.DONE: 4,
    Stage.FAILED: 4,
}


def _advance(line: ActorLine, stage: Stage, at: float) -> ActorLine:
    if (
        stage == Stage.PAUSED and line.stage == Stage.DONE
    ):  # a pause actor completes its hop before the task shows the pause
        return replace(line, stage=stage, began_at=at, seconds=None)
    if _ORDER[stage] <= _ORDER[line.stage]:
        return line
    ended = stage in (Stage.DONE, Stage.FAILED)
    began_at = line.began_at if ended or line.began_at is not None else at
    seconds = at - began_at if ended and began_at is not None else None
    return replace(line, stage=stage, began_at=began_at, seconds=seconds)
