"""Replays many failed tasks, slices of sets among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya.client.errors import ConflictError
from asya.client.mesh_client import MeshClient
from asya.dead_letters.replay import ReplayRequest
from asya_cli.output.text import one_line

if TYPE_CHECKING:
    from asya.tasks.view import TaskView

_FAILED_SETS = frozenset({"SliceFailed", "FanInTimeout"})
"""The reasons of origins whose sets have failed."""


@dataclass(frozen=True)
class ReplayedTask:
    """A task, and the id of the task that runs it again."""

    id: str
    replay: str

    def __str__(self) -> str:
        return f"{one_line(self.id)} → {self.replay}"


@dataclass
class SetReplays:
    """Replays failed tasks. A set is replayed once, whichever of its slices have failed."""

    mesh: MeshClient
    _replayed: dict[str, str] = field(default_factory=dict)

    def __call__(self, task: TaskView) -> ReplayedTask | None:
        """Replay a task, or the set that it is a slice of.

        Returns:
            Both ids; None for a set that was replayed before.

        Raises:
            ConflictError: It cannot be replayed; the message says why.
            CommandError: The gateway fails or does not answer.
        """
        if task.id in self._replayed:
            return None
        if task.reason not in _FAILED_SETS:
            try:
                return self._started(task.id, ReplayRequest())
            except ConflictError as error:
                if error.code != "slice" or task.parent_id is None:
                    raise
        origin = task.id if task.reason in _FAILED_SETS else task.parent_id
        while origin is not None and origin not in self._replayed:
            try:
                return self._started(origin, ReplayRequest(failed_only=True))
            except ConflictError as error:
                parent = self.mesh.task(origin) if error.code == "slice" else None
                if parent is None or parent.parent_id is None:  # a set within a set is repeated by the outer one
                    raise
                origin = parent.parent_id
        return None

    def _started(self, envelope_id: str, request: ReplayRequest) -> ReplayedTask:
        new = self.mesh.replay(envelope_id, request)
        self._replayed[envelope_id] = new.id
        return ReplayedTask(envelope_id, new.id)
