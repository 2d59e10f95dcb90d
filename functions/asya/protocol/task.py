"""Tasks: the record of one envelope id (`protocol §13`). `asya.protocol.task_merge` says how reports change it."""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from asya.protocol import states
from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.pause import PauseRelease, TaskPause
from asya.protocol.states import TaskStatus
from asya.protocol.wait import TaskWait

Settled = Literal["replayed", "redriven", "dismissed", "overtaken"]
"""How the failure of a task was settled (`protocol §13.resolution`)."""


class Resolution(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a failed task, or of any task that was replayed (`protocol §13.resolution`).

    Attributes:
        how: `overtaken` by a task that did the same work.
        at: when it was replayed, redriven or dismissed (RFC 3339).
        by: the principal of the caller.
        task: the task that runs in its place: the last one, if replays failed and were replayed themselves.
        status: the status of that task.
        reason: why it was dismissed.
        is_open: whether the failure is open again: its replay has failed, was canceled, or was never sent.
    """

    how: Settled
    at: str | None = None
    by: str | None = None
    task: str | None = None
    status: TaskStatus | None = None
    reason: str | None = None
    is_open: bool = False


class ReplayLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The replay of a task, in the record of the replayed task (`protocol §12.link`).

    Attributes:
        id: the new task.
        at: when the new task was created (RFC 3339).
        by: the principal of the caller, who owns the new task.
        request: where the replay starts, as JSON; a repetition of the same request finishes it.
        lease_until: until when the call that wrote the link may still send the message; None once it is sent.
    """

    id: str
    at: str
    by: str
    request: str = "{}"
    lease_until: str | None = None


class Dismissal(msgspec.Struct, frozen=True, kw_only=True):
    """A person has settled a failure without a replay (`protocol §13.dismiss`).

    Attributes:
        at: when (RFC 3339).
        by: the principal of the caller.
        reason: why, in the words of the person.
    """

    at: str
    by: str
    reason: str


OVERTAKEN_LIMIT = 5
"""Later tasks for the same work that a record names."""


class EarlierGeneration(states.HasStatus, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of an earlier generation, before a redrive reopened the task (`protocol §12`).

    Attributes:
        status: the last known status; a late report may still end the generation.
        ended_at, actor, reason, error: set once the generation has ended; the error holds type and message only.
        provisional: as in `TaskRecord`.
        resolution: how the failure of this generation was settled.
    """

    generation: int
    status: TaskStatus
    ended_at: str | None = None
    actor: str | None = None
    reason: str | None = None
    error: ErrorInfo | None = None
    provisional: bool = False
    resolution: Resolution | None = None


class StartedBy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What started a task (`protocol §13.started-by`).

    Attributes:
        name: the name of the trigger, the id of the backfill, or the id of the replayed task.
        slot: the slot of a schedule; None for other occurrences.
        after: the triggers whose tasks led to this start, oldest first (`protocol §16.chain`).
    """

    kind: Literal["caller", "trigger", "backfill", "replay"]
    name: str | None = None
    slot: str | None = None
    after: tuple[str, ...] = ()


class Cancellation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who canceled a task, and when (`protocol §13.cancel.by`).

    Attributes:
        at: when (RFC 3339).
        by: the principal of the caller; None if the task was canceled together with its root.
        root: the root with which the task was canceled.
    """

    at: str
    by: str | None = None
    root: str | None = None


class TaskRetry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last failed attempt of a task that another attempt follows (`protocol §13.retry`).

    Attributes:
        actor, generation, position, attempt: the attempt that failed.
        max_attempts: the attempts that the policy allows.
        at: when it was reported.
        next_at: when the next attempt is due.
        error: type and message only.
    """

    actor: str
    generation: int = 0
    position: int
    attempt: int
    max_attempts: int
    at: str
    next_at: str
    error: ErrorInfo

    @property
    def place(self) -> tuple[int, int, int, str, str, str, str]:
        """Orders the retries of a task: the last attempt counts, and of two runs of one attempt the later."""
        run = self.at, self.next_at, self.error.type, self.error.message
        return self.generation, self.position, self.attempt, *run


class TaskRecord(states.HasStatus, msgspec.Struct, frozen=True, kw_only=True):
    """The record of a task. The records of its hops are separate (`asya.protocol.hops`).

    Attributes:
        owner: the principal id of the creator; None without an owner, and then only operators see the task.
        provisional: whether the task's end gives way to another one of this generation: it comes from a dead letter or from
            the deadline (`protocol §13`).
        actor, route, attempt: from the creation, or from the end of a terminal task; the hops hold the values between.
        pause_epoch: the position of the last pause (`protocol §11`).
        resumed_epoch: the position of the last resumed pause; earlier pauses have ended too.
        pause: the question, only while the task is paused.
        handover: the release of the last pause, until it is sent.
        wait: the last wait for a time; it stays after the envelope was sent.
        retry: the last retry of any generation; it stays after the next attempt.
        earlier: the earlier generations, oldest first.
        context: the client's id of the conversation that the task belongs to.
        tool: the tool that started the task, or the root of its tree; None if no tool did.
        canceled: the last call that canceled the task itself.
        started_by: what started the task; None for children, and for tasks that began as a message.
        due_at: when the gateway learned of a deadline that had passed already; the deadline sweep looks for the task then.
        is_watched: whether push notifications follow each change; their configurations are separate items.
        lasts: whether the task has been open for minutes, so that indexes have it among open tasks and under its deadline.
        set_id: the innermost set that the task is a slice of; None for all others.
        letter: the SQS message id of the dead letter whose redrive has begun this generation.
        replayed: the last replay of this generation.
        dismissed: who has dismissed the failure of this generation.
        overtaken: the last tasks that were started later for the same work: for the same slot of a trigger, or with the
            same idempotency key.
    """

    id: str
    status: TaskStatus
    created_at: str
    updated_at: str
    generation: int = 0
    parent_id: str | None = None
    root_id: str | None = None
    owner: str | None = None
    deadline_at: str | None = None
    actor: str | None = None
    route: Route | None = None
    attempt: int | None = None
    result: Raw | UnsetType = UNSET
    result_uri: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    provisional: bool = False
    pause_epoch: int | None = None
    resumed_epoch: int | None = None
    pause: TaskPause | None = None
    handover: PauseRelease | None = None
    wait: TaskWait | None = None
    retry: TaskRetry | None = None
    earlier: tuple[EarlierGeneration, ...] = ()
    context: str | None = None
    tool: str | None = None
    started_by: StartedBy | None = None
    canceled: Cancellation | None = None
    due_at: str | None = None
    is_watched: bool = False
    lasts: bool = False
    set_id: str | None = None
    letter: str | None = None
    replayed: ReplayLink | None = None
    dismissed: Dismissal | None = None
    overtaken: tuple[str, ...] = ()

    def overtaken_by(self, task_id: str) -> "TaskRecord":
        """The record with a later task for the same work; unchanged if it names the task already."""
        if task_id == self.id or task_id in self.overtaken:
            return self
        return replace(self, overtaken=(*self.overtaken, task_id)[-OVERTAKEN_LIMIT:])

    @property
    def waiting_until(self) -> str | None:
        """When the task goes on, if its envelope waits for a time; None otherwise."""
        if self.is_terminal:
            return None
        if self.is_paused:
            return self.pause.until if self.pause is not None and self.pause.until is not UNSET else None
        return self.wait.until if self.wait is not None and not self.wait.is_sent else None

    @property
    def last_pause(self) -> int:
        """The position of the last pause of this generation, resumed or not; -1 without one."""
        epochs = (self.pause_epoch, self.resumed_epoch)
        return max((epoch for epoch in epochs if epoch is not None), default=-1)
