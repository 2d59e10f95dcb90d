"""A task, as a program handles it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
from msgspec import UNSET

from asya.capabilities.dead_letters.replay import ReplayRequest
from asya.capabilities.dead_letters.settlements import DismissRequest
from asya.client.errors import MeshError, NotFoundError
from asya.client.events import check_succeeded
from asya.client.payloads import decoded, encoded
from asya.client.watch import follow, wait
from asya.protocol.codec import ParseError, decode
from asya.tasks.listing import TaskFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.events import Event
    from asya.client.mesh_client import MeshClient
    from asya.tasks.listing import TimelineEntry
    from asya.tasks.view import TaskView

T = TypeVar("T")
WAIT_SECONDS = 24 * 3600.0
"""The time limit of a wait without one."""


@dataclass(frozen=True)
class Task:
    """One task of a mesh. It keeps nothing but its id, so any program can make it again from that.

    Attributes:
        id: The id of the task, which is that of its envelope.
    """

    id: str
    _client: MeshClient = field(repr=False)

    def view(self) -> TaskView:
        """Return what the mesh knows of the task now (`protocol §13`).

        Raises:
            NotFoundError: It has no record yet, or belongs to another owner.
            MeshError: The gateway does not answer, or answers with an error.
        """
        view = self._client.task(self.id)
        if view is None:
            raise NotFoundError(f"there is no task {self.id!r}", "The first actor of its route writes its record.")
        return view

    def wait(self, timeout: float = WAIT_SECONDS) -> Task:
        """Wait for the end of the task, well or badly, and return the task.

        A task without a record is waited for too: the first actor of its route writes the record, however long its queue is.

        Args:
            timeout: The time limit in seconds.

        Raises:
            TaskPausedError: The task waits for an answer.
            NotEndedError: It has not ended within the time limit. It goes on.
            MeshError: A call failed. Calls that may succeed later are repeated for 15 seconds.
        """
        wait(self._client, self.id, timeout)
        return self

    @overload
    def result(self) -> Any: ...
    @overload
    def result(self, kind: type[T]) -> T: ...
    def result(self, kind: type[Any] | None = None) -> Any:
        """Return the payload with which the task succeeded.

        Args:
            kind: The type of the payload, such as a pydantic model; without it, dicts, lists, numbers and texts are returned.

        Raises:
            TaskFailedError: The task failed.
            TaskCanceledError: The task was canceled.
            TaskPausedError: The task waits for an answer.
            NotEndedError: The task is at work.
            ContractError: The payload does not fit the type; the message names the field.
            MeshError: The result cannot be read.
        """
        return decoded(result_bytes(self._client, self.view()), kind)

    def events(self, timeout: float = WAIT_SECONDS) -> Iterator[Event]:
        """Yield the events of the task as they come, from its start to its end: hops, partials and the end (`protocol §13`).

        No event is lost or repeated when a connection breaks off. A pause is an event; the stream goes on after it.

        Args:
            timeout: The time limit in seconds.

        Raises:
            NotEndedError: The task has not ended within the time limit. It goes on.
            MeshError: A call failed. Calls that may succeed later are repeated for 15 seconds.
        """
        return follow(self._client, self.id, timeout)

    def timeline(self) -> list[TimelineEntry]:
        """Return every attempt at every hop with its times, first to last."""
        return self._client.timeline(self.id)

    def children(self) -> Iterator[Task]:
        """Yield the tasks that it fanned out into, newest first."""
        for view in self._client.iter_tasks(TaskFilter(parent=self.id)):
            yield Task(view.id, self._client)

    def cancel(self) -> None:
        """Cancel the task, with its children and its job runs. A task that has ended does not change.

        Raises:
            NotFoundError: There is no such task, or no actor has received it yet.
        """
        self._client.cancel(self.id)

    def resume(self, answers: object, *, since: str | None = None) -> Task:
        """Answer the pause of the task, and return the task.

        Args:
            answers: The answers by the name of the field: a dict, or a model.
            since: The start of the pause whose question was read (`pause.since`). An answer without it counts for the present
                question, which may be another one.

        Raises:
            InvalidAnswersError: Answers are invalid; the task stays paused.
            ConflictError: The task is not paused, or is in a later pause.
            NotFoundError: There is no such task.
        """
        self._client.resume(self.id, encoded(answers), since=since)
        return self

    def replay(
        self,
        hop: int | None = None,
        *,
        checkpoint: int | None = None,
        failed_only: bool = False,
        force: bool = False,
        key: str = "",
    ) -> Task:
        """Start a new task from a kept copy of an envelope of this one, and return the new task.

        Args:
            hop: The position of a hop whose actor has `keep_input`; by default the envelope starts where it failed.
            checkpoint: The position of a checkpoint.
            failed_only: After the failure of a set, run only the failed slices again.
            force: Replay the task although it was replayed, dismissed or overtaken.
            key: The idempotency key: a repeated one starts no second replay.

        Raises:
            ConflictError: No copy is kept there; the message lists those that are. Or the task is settled; the message names
                its replay.
            NotFoundError: There is no such task.
        """
        request = ReplayRequest(hop=hop, checkpoint=checkpoint, failed_only=failed_only, force=force)
        return Task(self._client.replay(self.id, request, key).id, self._client)

    def dismiss(self, reason: str) -> Task:
        """Say that the failure of the task needs no replay, and why; return the task.

        Raises:
            ConflictError: The task has not failed, or is settled in another way.
            NotFoundError: There is no such task.
        """
        self._client.dismiss(self.id, DismissRequest(reason=reason))
        return self


def result_bytes(client: MeshClient, view: TaskView) -> bytes:
    """Return the payload of a succeeded task as JSON.

    Raises:
        MeshError: It has none, as `Task.result` says, or its object cannot be read.
    """
    check_succeeded(view)
    if view.result is not UNSET:
        return bytes(view.result)
    stored = client.stored(view.id, view.result_uri)
    if stored is None:
        raise MeshError(f"{view.id} succeeded, but its object is missing: {view.result_uri or 'no address'}")
    try:
        return bytes(decode(stored.body).payload)
    except ParseError as error:
        raise MeshError(f"{stored.uri} is not an envelope: {error}") from error


def new_task_id(given: str | None) -> str:
    """Return the id of a new task: the given one, or a random one.

    Raises:
        ValueError: No envelope may have the given one, or only the mesh gives out such ids.
    """
    from uuid import uuid4

    from asya.protocol import ids

    if given is None:
        return str(uuid4())
    if (problem := ids.problem_of(given)) is not None:
        raise ValueError(f"the id {given!r} {problem}")
    if ids.is_reserved(given):
        raise ValueError(f"the id {given!r} is a UUID of version 8, which only the mesh gives out")
    return given


def as_raw(payload: object) -> msgspec.Raw:
    """Return a payload as it stands in an envelope."""
    return msgspec.Raw(encoded(payload))
