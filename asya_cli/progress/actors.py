"""The progress of each actor of a route, computed from successive views of a task. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from asya.protocol.envelope import progress_percent
from asya.protocol.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asya.tasks.view import TaskView

Stage = Literal["waiting", "received", "processing", "paused", "done", "failed"]

_STAGE_OF: dict[str, Stage] = {"received": "received", "processing": "processing", "completed": "done"}


@dataclass(frozen=True)
class ActorLine:
    """One actor of the route.

    Attributes:
        began_at: When a view first showed the actor at work, in epoch seconds of the mesh's clock; None if no view did.
        seconds: The duration of an actor that is done; None if no view showed it at work.
    """

    actor: str
    stage: Stage = "waiting"
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
    status: str = "pending"
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
                line = _advance(line, "done", at)
            elif position == current:
                line = _advance(line, stage, at)
            lines.append(line)
        percent = max(self.percent, task.progress_percent)
        return replace(self, lines=tuple(lines), percent=percent, status=task.status)

    def after_slices(self, slices: Iterable[ActorLine]) -> Progress:
        """Return the progress with other lines of slices."""
        return replace(self, slices=tuple(slices) or self.slices)


def _current_stage(task: TaskView) -> Stage:
    if task.status == "succeeded":
        return "done"
    if task.status in ("failed", "canceled"):
        return "failed"
    if task.status == "paused":
        return "paused"
    assert task.route is not None
    # The record has no stage of the actor, so the percentage tells it.
    for status in ("completed", "processing", "received"):
        if task.progress_percent >= progress_percent(task.route, status):
            return _STAGE_OF[status]
    return "waiting"


_ORDER = {"waiting": 0, "received": 1, "processing": 2, "paused": 3, "done": 4, "failed": 4}


def _advance(line: ActorLine, stage: Stage, at: float) -> ActorLine:
    if stage == "paused" and line.stage == "done":  # a pause actor completes its hop before the task shows the pause
        return replace(line, stage=stage, began_at=at, seconds=None)
    if _ORDER[stage] <= _ORDER[line.stage]:
        return line
    ended = stage in ("done", "failed")
    began_at = line.began_at if ended or line.began_at is not None else at
    seconds = at - began_at if ended and began_at is not None else None
    return replace(line, stage=stage, began_at=began_at, seconds=seconds)
