"""Replays many failed tasks, slices of sets among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from asya.capabilities.dead_letters.replay import ReplayRequest
from asya.client.errors import ConflictError
from asya.client.mesh_client import MeshClient
from asya.protocol import states
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
                return self._started(task.id, ReplayRequest(), key_of(task))
            except ConflictError as error:
                if error.code == "replayed":  # by a call that was interrupted, or by another operator
                    return self._known(task.id)
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

    def _started(self, envelope_id: str, request: ReplayRequest, key: str = "") -> ReplayedTask:
        new = self.mesh.replay(envelope_id, request, key)
        self._replayed[envelope_id] = new.id
        return ReplayedTask(envelope_id, new.id)

    def _known(self, envelope_id: str) -> ReplayedTask | None:
        task = self.mesh.task(envelope_id)
        replay = task.resolution.task if task is not None and task.resolution is not None else None
        return ReplayedTask(envelope_id, replay) if replay is not None else None


def key_of(task: TaskView) -> str:
    """Return the idempotency key with which bulk commands replay a failure: a second command finds what the first one has begun.

    A failure whose replay failed is another one, with another key.
    """
    last = task.resolution.task if task.resolution is not None and task.resolution.status != states.PENDING else None
    parts = "\n".join((task.id, str(task.generation), last or ""))
    return f"asya-replay-{sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()}"
