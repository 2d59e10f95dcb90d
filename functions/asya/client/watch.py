"""Waits for the end of a task, and follows its events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from asya.client.errors import MeshError
from asya.client.events import check_not_paused
from asya.client.patience import FIRST_PAUSE, EventReader, Patience

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.events import Event
    from asya.client.mesh_client import MeshClient
    from asya.client.patience import Poll, StreamPoll
    from asya.tasks.view import TaskView


def now() -> float:
    """Return the time of a clock that never goes back, in seconds."""
    return time.monotonic()


def poll(mesh: MeshClient, task_id: str) -> Poll:
    """Return the task, None without a record, or the error of the call."""
    try:
        return mesh.task(task_id)
    except MeshError as error:
        return error


def poll_stream(mesh: MeshClient, task_id: str, cursor: str) -> StreamPoll:
    """Return the new events of a task as text, None after the last one, or the error of the call."""
    try:
        return mesh.events(task_id, cursor)
    except MeshError as error:
        return error


def wait(mesh: MeshClient, task_id: str, seconds: float) -> None:
    """Wait until a task has ended.

    Raises:
        TaskPausedError: The task waits for an answer.
        NotEndedError: The task has not ended after `seconds`.
        MeshError: A call failed, and another one would fail too, or the gateway does not answer for 15 seconds.
    """
    patience = Patience(task_id, seconds, now())
    while (pause := patience.after(poll(mesh, task_id), now())) is not None:
        time.sleep(pause)
    check_not_paused(patience.view)


def follow(mesh: MeshClient, task_id: str, seconds: float) -> Iterator[Event]:
    """Yield the events of a task as they come, up to its end.

    Raises:
        NotEndedError: The task has not ended after `seconds`.
        MeshError: As of `wait`.
    """
    reader = EventReader(task_id, seconds, now())
    while not reader.is_over:
        yield from reader.after(poll_stream(mesh, task_id, reader.cursor), now())
        if reader.pause and not reader.is_over:
            time.sleep(reader.pause)


def watch(
    mesh: MeshClient, envelope_id: str, seconds: float, unknown_seconds: float | None = None
) -> Iterator[TaskView | None]:
    """Yield the task after each poll, None while it has no record; the last one is the ended task.

    The polls are regular, for a display. The iteration stops without an error if the task has no record after `unknown_seconds`.

    Raises:
        NotEndedError: The task has not ended after `seconds`.
        MeshError: As of `wait`.
    """
    patience = Patience(envelope_id, seconds, now())
    task: TaskView | None = None
    while True:
        try:
            task = mesh.task(envelope_id)
            patience.answered(task, now())
        except MeshError as error:
            patience.failed(error, now())
        yield task
        if task is not None and task.is_terminal:
            return
        if patience.is_unknown(unknown_seconds, now()):
            return
        patience.check(now())
        time.sleep(FIRST_PAUSE)
