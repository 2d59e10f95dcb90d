"""The words for the states of envelopes, tasks, backfills and job runs, each written once (`protocol §2`, `§13`, `§16`).

A phase is what an envelope carries, an event's status what a report says, and a task's status what its record and its
answers show. They share words, so a word has one constant here.
"""

from typing import Final, Literal

Phase = Literal["pending", "processing", "retrying", "succeeded", "failed", "paused", "canceled"]
Progress = Literal["received", "processing", "completed"]
EventStatus = Literal[
    "registered", "received", "processing", "completed", "succeeded", "failed", "canceled", "paused", "waiting"
]
TaskStatus = Literal["pending", "running", "paused", "succeeded", "failed", "canceled"]
ViewStatus = Literal["pending", "running", "paused", "succeeded", "failed", "canceled", "unknown"]
"""The statuses in answers. `unknown` stands for a record that cannot be read; no record ever has it."""
EndStatus = Literal["succeeded", "failed", "canceled"]
BackfillState = Literal["running", "stopped", "canceled", "done"]
JobEnd = Literal["done", "failed", "timed_out", "crashed"]
"""How an envelope ended in a job run."""

PENDING: Final = "pending"
PROCESSING: Final = "processing"
RETRYING: Final = "retrying"
RUNNING: Final = "running"
PAUSED: Final = "paused"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
CANCELED: Final = "canceled"
UNKNOWN: Final = "unknown"

REGISTERED: Final = "registered"
RECEIVED: Final = "received"
COMPLETED: Final = "completed"
WAITING: Final = "waiting"

STOPPED: Final = "stopped"
DONE: Final = "done"
TIMED_OUT: Final = "timed_out"
CRASHED: Final = "crashed"

TERMINAL: Final[frozenset[str]] = frozenset((SUCCEEDED, FAILED, CANCELED))
AT_REST: Final = TERMINAL | {PAUSED}
"""A task in one of them does not go on by itself."""
ENDED_BADLY: Final[frozenset[str]] = frozenset((FAILED, CANCELED))
ACTIVE: Final[frozenset[str]] = frozenset((PENDING, RUNNING))
"""A task in one of them goes on by itself."""
PROGRESS: Final[frozenset[str]] = frozenset((RECEIVED, PROCESSING, COMPLETED))


class HasStatus:
    """What a status means, for everything that has the status of a task."""

    __slots__ = ()

    status: str

    @property
    def is_active(self) -> bool:
        """Whether the task goes on by itself."""
        return self.status in ACTIVE

    @property
    def is_at_rest(self) -> bool:
        """Whether the task has ended or is paused: it does not go on by itself."""
        return self.status in AT_REST

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended; only a new generation changes it now, unless the end is provisional."""
        return self.status in TERMINAL

    @property
    def is_pending(self) -> bool:
        """Whether no actor has reported anything about the task."""
        return self.status == PENDING

    @property
    def is_running(self) -> bool:
        """Whether an actor has reported about the task, and it is not at rest."""
        return self.status == RUNNING

    @property
    def is_paused(self) -> bool:
        """Whether the task waits for an answer or a time at a pause actor."""
        return self.status == PAUSED

    @property
    def has_succeeded(self) -> bool:
        """Whether the task has ended with a result."""
        return self.status == SUCCEEDED

    @property
    def has_failed(self) -> bool:
        """Whether the task has failed; a canceled task has not."""
        return self.status == FAILED

    @property
    def has_ended_badly(self) -> bool:
        """Whether the task has failed or was canceled."""
        return self.status in ENDED_BADLY

    @property
    def is_canceled(self) -> bool:
        """Whether the task was canceled."""
        return self.status == CANCELED
