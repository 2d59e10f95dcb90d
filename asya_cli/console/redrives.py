"""Redrives the dead letters of many tasks for the page, as `asya dlq redrive` does for one actor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from asya.client.errors import MeshError
from asya_cli.dlq.letters import DeadLetters, Filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asya.client.mesh_client import MeshClient

TASKS_LIMIT = 1000
"""How many tasks one request may name."""


class RedrivenTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task whose dead letter is wanted.

    Attributes:
        actor: The actor at which it failed.
    """

    id: str
    actor: str


class RedriveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the page asks for.

    Attributes:
        force: Also redrive a task that has succeeded, was canceled, is paused or went on elsewhere.
    """

    tasks: tuple[RedrivenTask, ...]
    force: bool = False


class RedriveOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one task.

    Attributes:
        generation: The generation in which its envelope was sent; None if it was sent unchanged, or not.
        problem: Why it was not sent again; empty after a success.
    """

    id: str
    generation: int | None = None
    problem: str = ""


class RedriveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of each task that the page named."""

    items: list[RedriveOutcome]


@dataclass(frozen=True)
class Redrives:
    """Redrives the dead letters of a mesh. Each queue is read once for all of its tasks."""

    mesh: MeshClient

    def __call__(self, request: RedriveRequest) -> RedriveAnswer:
        """Redrive the dead letters of these tasks. A task that cannot be redriven does not stop the others."""
        letters = DeadLetters(self.mesh)
        by_actor: dict[str, list[str]] = {}
        for task in request.tasks:
            by_actor.setdefault(task.actor, []).append(task.id)
        return RedriveAnswer(
            items=[
                outcome
                for actor, ids in by_actor.items()
                for outcome in _of_actor(letters, actor, ids, force=request.force)
            ]
        )


def _of_actor(letters: DeadLetters, actor: str, ids: Sequence[str], *, force: bool) -> Iterator[RedriveOutcome]:
    waiting = dict.fromkeys(ids)
    problem = f"there is no dead letter of this task in the queue of {actor}"
    try:
        with letters.scan(actor, Filter()) as found:
            for letter in found:
                if letter.id not in waiting:
                    continue
                del waiting[letter.id]
                result = letters.redrive(letter, force=force)
                yield RedriveOutcome(id=letter.id, generation=result.generation, problem=result.problem)
                if not waiting:
                    return
    except MeshError as error:
        problem = " ".join(filter(None, (error.problem, error.advice)))
    for task_id in waiting:
        yield RedriveOutcome(id=task_id, problem=problem)
