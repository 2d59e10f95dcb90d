"""Looking at a task again and again until it has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.tasks.view import TaskView
    from asya_cli.mesh_client import MeshClient

PAUSE = 0.25
"""Seconds between two looks."""

PATIENCE = 15.0
"""Seconds for which the status endpoint may fail before the watcher gives up."""

TERMINAL = frozenset({"succeeded", "failed", "canceled"})


def watch(
    mesh: MeshClient, envelope_id: str, seconds: float, unknown_seconds: float | None = None
) -> Iterator[TaskView | None]:
    """Every look at the task, None while nobody has heard of it; the last one shows how it ended.

    Stops early, without an error, if nobody has heard of it after `unknown_seconds`.

    Raises:
        CommandError: It has not ended after so many seconds, or the status endpoint does not answer.
    """
    began = answered = time.monotonic()
    deadline = began + seconds
    task: TaskView | None = None
    while True:
        try:
            task = mesh.task(envelope_id)
            answered = time.monotonic()
        except CommandError:
            if time.monotonic() > answered + PATIENCE:
                raise
        yield task
        if task is not None and task.status in TERMINAL:
            return
        if task is None and unknown_seconds is not None and time.monotonic() > began + unknown_seconds:
            return
        if time.monotonic() > deadline:
            standing = f"{task.status} at {task.actor}" if task else "not received by any actor"
            raise CommandError(f"{envelope_id} has not ended after {seconds:.0f} s: {standing}")
        time.sleep(PAUSE)
