"""The slices of a fan-out as a person watches them: one line for each actor that they pass, all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya.protocol import ids
from asya_cli.progress.actors import ActorLine, Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asya.tasks.view import TaskView
    from asya_cli.mesh_client import MeshClient

MOST = 50
"""Slices that are looked at; of more, the first ones stand for the others."""


@dataclass
class SliceWatch:
    """The slices that an envelope fans out at one position of its route.

    Attributes:
        position: Of the actor that fans out: how many come before it.
        actors: Whom each slice passes on its way to the fan-in actor.
    """

    mesh: MeshClient
    origin: str
    position: int
    actors: tuple[str, ...]
    seen: list[Progress] = field(default_factory=list)

    def look(self, task: TaskView) -> Iterator[ActorLine]:
        """The actors' lines now.

        Raises:
            CommandError: The status endpoint did not answer.
        """
        if self.actors and task.route is not None and len(task.route.prev) >= self.position:
            self._ask(task.generation)
        for place, actor in enumerate(self.actors, start=self.position + 1):
            yield together(actor, [line for slice_ in self.seen for line in slice_.lines[place : place + 1]])

    def _ask(self, generation: int) -> None:
        """Ask for each slice that has not ended, and for the next one as long as there is one."""
        for index in range(MOST):
            known = self.seen[index] if index < len(self.seen) else None
            if known is not None and known.status in ("succeeded", "failed", "canceled"):
                continue
            # Frame 0 is the origin itself.
            found = self.mesh.task(ids.child_id(self.origin, generation, self.position, index + 1))
            if found is None:
                return
            self.seen[index : index + 1] = [(known or Progress(())).after(found)]


def together(actor: str, lines: Sequence[ActorLine]) -> ActorLine:
    """Several slices at one actor as one line: it began with the first of them and is done with the last."""
    stages = {line.stage for line in lines}
    began = [line.began_at for line in lines if line.began_at is not None]
    ends = [line.began_at + line.seconds for line in lines if line.began_at is not None and line.seconds is not None]
    stage: Stage = next((stage for stage in ("failed", "processing", "received") if stage in stages), "waiting")
    if stages == {"done"}:
        stage = "done"
    elif "done" in stages and stage != "failed":
        stage = "processing"
    return ActorLine(
        actor,
        stage,
        min(began) if began else None,
        max(ends) - min(began) if stage == "done" and ends else None,
    )
