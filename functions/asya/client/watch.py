"""Polls a task until it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from asya.client.ends import TERMINAL, not_ended
from asya.client.errors import MeshError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

POLL_SECONDS = 0.25
"""The time between two polls."""

RETRY_SECONDS = 15.0
"""How long failed polls are retried."""


class Patience:
    """Decides how long a wait for the end of a task goes on.

    Args:
        task_id: The id of the task.
        seconds: The time limit of the wait.
        now: The time at which it begins, in seconds of a clock that never goes back.
    """

    def __init__(self, task_id: str, seconds: float, now: float) -> None:
        self._task_id, self._seconds, self._began, self._answered = task_id, seconds, now, now
        self._view: TaskView | None = None

    def answered(self, view: TaskView | None, now: float) -> None:
        """Take the answer to a poll; None without a record."""
        self._view, self._answered = view, now

    def failed(self, error: MeshError, now: float) -> None:
        """Take the failure of a poll.

        Raises:
            MeshError: The polls have failed for too long.
        """
        if now > self._answered + RETRY_SECONDS:
            raise error

    def is_unknown(self, unknown_seconds: float | None, now: float) -> bool:
        """Whether the task has had no record for so long that it has none."""
        return self._view is None and unknown_seconds is not None and now > self._began + unknown_seconds

    def check(self, now: float) -> None:
        """Check the time limit.

        Raises:
            NotEndedError: The wait has taken too long.
        """
        if now > self._began + self._seconds:
            raise not_ended(self._task_id, self._view, self._seconds)


def watch(
    mesh: MeshClient, envelope_id: str, seconds: float, unknown_seconds: float | None = None
) -> Iterator[TaskView | None]:
    """Yield the task after each poll, None while it has no record; the last one is the ended task.

    The iteration stops without an error if the task has no record after `unknown_seconds`.

    Raises:
        NotEndedError: The task has not ended after `seconds`.
        MeshError: The gateway does not answer for 15 seconds.
    """
    patience = Patience(envelope_id, seconds, time.monotonic())
    task: TaskView | None = None
    while True:
        try:
            task = mesh.task(envelope_id)
            patience.answered(task, time.monotonic())
        except MeshError as error:
            patience.failed(error, time.monotonic())
        yield task
        if task is not None and task.status in TERMINAL:
            return
        if patience.is_unknown(unknown_seconds, time.monotonic()):
            return
        patience.check(time.monotonic())
        time.sleep(POLL_SECONDS)
