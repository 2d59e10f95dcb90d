"""From one look at a task to the next: which actor is where, since when, and how long it took. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from asya.protocol.route import progress_percent
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
        began_at: When it was first seen at work, seconds since the epoch by the mesh's clock; None if it never was.
        seconds: How long it took, once it is done; None if it was too quick to be seen at work.
    """

    actor: str
    stage: Stage = "waiting"
    began_at: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Progress:
    """All actors of a route in order, and the whole task.

    Attributes:
        slices: The actors that the slices of a fan-out pass, before the fan-in actor: a line for all slices together.
        slices_at: How many actors of the route come before them.
    """

    lines: tuple[ActorLine, ...]
    percent: int = 0
    status: str = "pending"
    slices: tuple[ActorLine, ...] = ()
    slices_at: int = 0

    @classmethod
    def of(cls, route: Iterable[str], slices: Iterable[str] = (), slices_at: int = 0) -> Progress:
        """Nothing has happened yet."""
        lines, beside = (tuple(ActorLine(actor) for actor in actors) for actors in (route, slices))
        return cls(lines, slices=beside, slices_at=slices_at)

    @property
    def shown(self) -> tuple[ActorLine, ...]:
        """Every line, those of slices where they belong."""
        return self.lines[: self.slices_at] + self.slices + self.lines[self.slices_at :]

    def after(self, task: TaskView) -> Progress:
        """The progress after a look at the task. Looks may skip actors; a stage never goes back."""
        route = task.route
        if route is None:
            return replace(self, percent=task.progress_percent, status=task.status)
        names = (*route.prev, *((route.curr,) if route.curr else ()), *route.next)
        at = parse_time(task.updated_at).timestamp()
        current = len(route.prev)
        stage = _current_stage(task)
        lines = []
        for position, name in enumerate(names):
            known = self.lines[position] if position < len(self.lines) else ActorLine(name)
            line = replace(known, actor=name)
            if position < current:
                line = _moved(line, "done", at)
            elif position == current:
                line = _moved(line, stage, at)
            lines.append(line)
        percent = max(self.percent, task.progress_percent)
        return replace(self, lines=tuple(lines), percent=percent, status=task.status)

    def after_slices(self, slices: Iterable[ActorLine]) -> Progress:
        """The same with what is known of the slices now."""
        return replace(self, slices=tuple(slices) or self.slices)


def _current_stage(task: TaskView) -> Stage:
    if task.status == "succeeded":
        return "done"
    if task.status in ("failed", "canceled"):
        return "failed"
    if task.status == "paused":
        return "paused"
    assert task.route is not None
    # The record says how far the task is, not at which stage its actor is: that is in the percentage.
    for status in ("completed", "processing", "received"):
        if task.progress_percent >= progress_percent(task.route, status):
            return _STAGE_OF[status]
    return "waiting"


_ORDER = {"waiting": 0, "received": 1, "processing": 2, "paused": 3, "done": 4, "failed": 4}


def _moved(line: ActorLine, stage: Stage, at: float) -> ActorLine:
    if stage == "paused" and line.stage == "done":  # the actor was done with it before the task was known to wait
        return replace(line, stage=stage, began_at=at, seconds=None)
    if _ORDER[stage] <= _ORDER[line.stage]:
        return line
    ended = stage in ("done", "failed")
    began_at = line.began_at if ended or line.began_at is not None else at
    seconds = at - began_at if ended and began_at is not None else None
    return replace(line, stage=stage, began_at=began_at, seconds=seconds)
