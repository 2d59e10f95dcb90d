"""Starts tasks: writes the record first and sends the message second (`protocol §13`, POST).

| failure | result |
|---|---|
| crash before the send | The record stays `pending` until its deadline or expiry; a repetition with the key finishes the start |
| crash after the send | The task runs without a response to the caller. With a key, a repeated request returns its id |
| SQS rejects the message | The record is removed, unless another process has taken the start over, or may have sent its message |
| SQS does not answer | The record stays, because the task may run; the error names its id |
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender, TooLargeError
from asya.protocol.api_errors import ApiError
from asya.protocol.task import TaskRecord
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.idempotency import IdempotencyKey, InProgress, KeyClaim, KeyMismatch, StartedTask
from asya.tasks.starts.submission import FirstMessage, first_record

# Builds the first message from the id and the creation time of the task.
Composer = Callable[[str, datetime], FirstMessage]
# Completes the record of a task before the task starts.
Prepare = Callable[[TaskRecord], TaskRecord]


def no_trace(_first: FirstMessage, _started_at: datetime) -> None:
    """Record no span."""


def unchanged(record: TaskRecord) -> TaskRecord:
    """Return the record unchanged."""
    return record


@dataclass(frozen=True)
class TaskStarter:
    """Starts tasks, each at most once per idempotency key.

    Attributes:
        warn: logs a warning.
        trace: records the span of a submission that is sent, from the first message and the start of the request.
    """

    tasks: Tasks
    keys: IdempotencyKeys
    sender: SubmissionSender
    warn: Callable[[str], None]
    trace: Callable[[FirstMessage, datetime], None] = no_trace

    def start(
        self,
        compose: Composer,
        owner: str,
        task_id: str,
        now: datetime,
        prepare: Prepare = unchanged,
        *,
        created_at: datetime | None = None,
    ) -> str:
        """Start a task and return its id.

        Args:
            compose: builds the first message.
            owner: the principal of the caller.
            task_id: the id of the task.
            now: the time.
            prepare: completes the record; called before the write, and again if a repetition finishes the start.
            created_at: the creation time of the task, if another call has begun it.

        Raises:
            ApiError: 413 if the message is too large, 503 if it was not sent.
            TaskStoreError: the record was not written; nothing has been sent.
        """
        first = compose(task_id, created_at or now)
        is_new = not first.envelope.is_stealth and self.tasks.create(prepare(first_record(first.envelope, owner)), now)
        try:
            self._send(first)
        except ApiError as error:
            if is_new and not _may_be_sent(error):
                self._clean_up(lambda: self.tasks.withdraw(task_id))
            raise
        self.trace(first, created_at or now)
        return task_id

    def start_once(
        self, compose: Composer, key: IdempotencyKey, task_id: str, now: datetime, prepare: Prepare = unchanged
    ) -> str:
        """Start a task once per idempotency key, and return its id.

        Raises:
            ApiError: as `start`; 409 if the key belongs to a different request, or to a request in progress.
            TaskStoreError: the table is unavailable; nothing has been sent.
        """
        match self.keys.claim(key, task_id, now):
            case StartedTask(task_id=started):
                return started
            case InProgress():
                problem = "another request with this Idempotency-Key is in progress; repeat this one later"
                raise ApiError(409, "idempotency_in_progress", problem, "Idempotency-Key", retry_after=5)
            case KeyMismatch():
                problem = "this Idempotency-Key was used for a different request; use a new key"
                raise ApiError(409, "idempotency_mismatch", problem, "Idempotency-Key")
            case KeyClaim() as claim:
                if claim.expired not in (None, claim.task_id):
                    self._note_at(claim.expired, claim.task_id, now)
                return self._start_claimed(compose, key, claim, prepare, now)

    def task_of(self, owner: str, key: str) -> str | None:
        """The id of the task of a key; None if the key is unused.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return self.keys.task_of(owner, key)

    def _start_claimed(
        self, compose: Composer, key: IdempotencyKey, claim: KeyClaim, prepare: Prepare, now: datetime
    ) -> str:
        is_new = False
        try:
            first = compose(claim.task_id, claim.created_at)
            record = None if first.envelope.is_stealth else prepare(first_record(first.envelope, key.owner))
            if record is not None:
                is_new = True  # a failed write may have been done
                is_new = self.tasks.create(record, now)
            if claim.expired == claim.task_id and record is not None and not is_new:
                # The key has expired, and the task that it has started is kept: this is a repetition of that start.
                self._clean_up(lambda: self.keys.mark_sent(key, claim))
                return claim.task_id
            self._send(first)
        except (ApiError, TaskStoreError) as error:
            if not _may_be_sent(error):
                self._clean_up(lambda: self.keys.undo(key, claim, removes_record=is_new))
            raise
        # A failure here must not fail the call, because the task runs.
        self._clean_up(lambda: self.keys.mark_sent(key, claim))
        self.trace(first, claim.created_at)
        return claim.task_id

    def _send(self, first: FirstMessage) -> None:
        """Send the first message.

        Raises:
            ApiError: 413 if the message is too large, 503 if it was not sent, or may not have been.
        """
        task_id = first.envelope.id
        try:
            self.sender.send(first.delivery)
        except TooLargeError as error:
            raise ApiError(413, "too_large", str(error), "payload") from error
        except NotSentError as error:
            self.warn(f"task {task_id} was not started: {error}")
            raise ApiError(
                503, "not_sent", "the task was not started: its queue rejected the message", "actor"
            ) from error
        except MaybeSentError as error:
            self.warn(f"task {task_id} may or may not have been started: {error}")
            problem = f"task {task_id} may or may not have been started: its queue did not answer"
            raise ApiError(503, "maybe_sent", problem) from error

    def _note_at(self, earlier: str, task_id: str, now: datetime) -> None:
        """Name a task in the record of an earlier one with the same key: its success overtakes the failure of that one."""

        def note() -> None:
            self.tasks.update(earlier, lambda record, _: record.overtaken_by(task_id), now)

        self._clean_up(note)

    def _clean_up(self, action: Callable[[], None]) -> None:
        """Run an action whose failure does not change the response."""
        try:
            action()
        except TaskStoreError as error:
            self.warn(str(error))


def _may_be_sent(error: Exception) -> bool:
    return isinstance(error.__cause__, MaybeSentError)
