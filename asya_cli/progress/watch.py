"""Polls a task until it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.tasks.view import TaskView
    from asya_cli.mesh_client import MeshClient

POLL_SECONDS = 0.25
"""The time between two polls."""

RETRY_SECONDS = 15.0
"""How long failed polls are retried."""

TERMINAL = frozenset({"succeeded", "failed", "canceled"})


def watch(
    mesh: MeshClient, envelope_id: str, seconds: float, unknown_seconds: float | None = None
) -> Iterator[TaskView | None]:
    """Yield the task after each poll, None while it has no record; the last one is the ended task.

    The iteration stops without an error if the task has no record after `unknown_seconds`.

    Raises:
        CommandError: The task has not ended after `seconds`, or the gateway does not answer for 15 seconds.
    """
    began = answered = time.monotonic()
    deadline = began + seconds
    task: TaskView | None = None
    while True:
        try:
            task = mesh.task(envelope_id)
            answered = time.monotonic()
        except CommandError:
            if time.monotonic() > answered + RETRY_SECONDS:
                raise
        yield task
        if task is not None and task.status in TERMINAL:
            return
        if task is None and unknown_seconds is not None and time.monotonic() > began + unknown_seconds:
            return
        if time.monotonic() > deadline:
            state = f"{task.status} at {task.actor}" if task else "no actor has received it"
            raise CommandError(f"{envelope_id} has not ended after {seconds:.0f} s: {state}", code=ExitCode.NOT_ENDED)
        time.sleep(POLL_SECONDS)
