"""When a wait asks again, and when it gives up: pure decisions that waits with and without an event loop share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from asya.client.errors import MeshError, NotFoundError, UnavailableError, UnreachableError
from asya.client.events import is_over, not_ended, parse_events, state_of

if TYPE_CHECKING:
    from asya.client.events import Event
    from asya.tasks.view import TaskView

    Poll: TypeAlias = TaskView | MeshError | None
    """The answer to a poll: the task, None without a record, or the error."""
    StreamPoll: TypeAlias = bytes | MeshError | None
    """The answer of a stream: events as text, None after the last one, or the error."""

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 2.0
"""Seconds between two polls. A long task is asked for less often, because each poll is a call that somebody pays."""
_SHARE = 20
"""A pause is this part of the wait so far, between the two limits."""

RETRY_SECONDS = 15.0
"""How long failed polls are repeated."""


class Patience:
    """Decides how long a wait for the end of a task goes on.

    Args:
        task_id: The id of the task.
        seconds: The time limit of the wait.
        now: The time at which it begins, in seconds of a clock that never goes back.
    """

    def __init__(self, task_id: str, seconds: float, now: float) -> None:
        self._task_id, self._seconds, self._began, self._answered = task_id, seconds, now, now
        self._state = state_of(None)
        self.view: TaskView | None = None

    def after(self, poll: Poll, now: float) -> float | None:
        """Take a poll, and return the seconds until the next one; None if the task has ended or is paused.

        Raises:
            NotEndedError: The wait has taken too long.
            MeshError: The poll failed, and another one would fail too, or polls have failed for 15 seconds.
        """
        if isinstance(poll, MeshError):
            self.failed(poll, now)
        else:
            self.answered(poll, now)
            if is_over(poll):
                return None
        self.check(now)
        return self.pause(now)

    def answered(self, view: TaskView | None, now: float) -> None:
        """Take the answer to a poll; None without a record."""
        self.view = view
        self.heard(state_of(view), now)

    def heard(self, state: str, now: float) -> None:
        """Take a sign of the gateway, and what it says of the task."""
        self._state, self._answered = state, now

    def failed(self, error: MeshError, now: float) -> None:
        """Take the failure of a poll.

        Raises:
            MeshError: Another poll would fail too, or the polls have failed for too long.
        """
        is_transient = isinstance(error, UnreachableError | UnavailableError)
        if not is_transient or now > self._answered + RETRY_SECONDS:
            raise error

    def is_unknown(self, unknown_seconds: float | None, now: float) -> bool:
        """Whether the task has had no record for so long that it has none."""
        return self.view is None and unknown_seconds is not None and now > self._began + unknown_seconds

    def check(self, now: float) -> None:
        """Check the time limit.

        Raises:
            NotEndedError: The wait has taken too long.
        """
        if now >= self._began + self._seconds:
            raise not_ended(self._task_id, self._state, self._seconds)

    def pause(self, now: float) -> float:
        """Return the seconds until the next poll, within the time limit."""
        usual = min(max(FIRST_PAUSE, (now - self._began) / _SHARE), LONGEST_PAUSE)
        return min(usual, self._began + self._seconds - now)


class EventReader:
    """Decides what a follower of a stream asks next (`protocol §13`, streams).

    Args:
        task_id, seconds, now: As of `Patience`.

    Attributes:
        cursor: The id of the last event; empty before the first one.
        is_over: Whether the stream has ended.
        pause: The seconds until the next call.
    """

    def __init__(self, task_id: str, seconds: float, now: float) -> None:
        self._patience = Patience(task_id, seconds, now)
        self.cursor = ""
        self.is_over = False
        self.pause = 0.0

    def after(self, answer: StreamPoll, now: float) -> list[Event]:
        """Take an answer, and return its events. A stream that broke off goes on after the last event.

        Raises:
            NotEndedError: The task has not ended within the time limit.
            NotFoundError: The record of the task is gone.
            MeshError: A call failed, and another one would fail too, or calls have failed for 15 seconds.
        """
        events: list[Event] = []
        if isinstance(answer, bytes):
            self._patience.heard("it is at work or paused", now)
            events = list(parse_events(answer))
        elif answer is None:
            self.is_over = True
        elif isinstance(answer, NotFoundError) and not self.cursor:
            self._patience.answered(None, now)  # the first actor of its route writes the record
        else:
            self._patience.failed(answer, now)
        for number, event in enumerate(events):
            self.cursor = event.cursor or self.cursor
            if event.is_last:
                self.is_over = True
                return events[: number + 1]
        if not self.is_over and not events:
            self._patience.check(now)
        self.pause = 0.0 if events else self._patience.pause(now)
        return events
