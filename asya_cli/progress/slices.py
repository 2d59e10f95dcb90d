"""The progress of the slices of a fan-out: one line for each actor, merged over all slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya.protocol import ids
from asya_cli.progress.actors import ActorLine, Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

MAX_SLICES = 50
"""The number of slices to poll. In a larger set the first ones represent the others."""


@dataclass
class SlicePoller:
    """Polls the slices of one fan-out.

    Attributes:
        origin: The id of the envelope that was fanned out.
        position: The position of the actor that fans out.
        actors: The actors between fan-out and fan-in.
        slices: The progress of each slice that has a record, in order.
    """

    mesh: MeshClient
    origin: str
    position: int
    actors: tuple[str, ...]
    slices: list[Progress] = field(default_factory=list)

    def poll(self, task: TaskView) -> Iterator[ActorLine]:
        """Yield the line of each actor.

        Raises:
            CommandError: The gateway does not answer, or answers with an error.
        """
        if self.actors and task.route is not None and len(task.route.prev) >= self.position:
            self._poll_slices(task.generation)
        for position, actor in enumerate(self.actors, start=self.position + 1):
            yield merge_lines(actor, [line for each in self.slices for line in each.lines[position : position + 1]])

    def _poll_slices(self, generation: int) -> None:
        """Read the task of each slice that has not ended, until one has no record yet."""
        for index in range(MAX_SLICES):
            progress = self.slices[index] if index < len(self.slices) else None
            if progress is not None and progress.status in ("succeeded", "failed", "canceled"):
                continue
            # Frame 0 is the origin itself.
            task = self.mesh.task(ids.child_id(self.origin, generation, self.position, index + 1))
            if task is None:
                return
            self.slices[index : index + 1] = [(progress or Progress(())).after(task)]


def merge_lines(actor: str, lines: Sequence[ActorLine]) -> ActorLine:
    """Merge the lines of several slices at one actor: it begins with the first slice and is done with the last."""
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
