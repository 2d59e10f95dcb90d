"""Starting a task: its record first, its first message second (`protocol §13`, POST).

What happens if the process dies, or AWS does, in between:

- Before the message: a record that stays `pending` until its deadline or its retention. Nobody has been told its id; a caller
  who repeats the request gets a new task, or, with an `Idempotency-Key`, has this one finished.
- After the message: the task runs; the caller has had no answer. With a key the repetition gets its id.
- The message is refused: the record is withdrawn. There is no answer: the record stays, because the task may be running,
  and the error names its id.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asya.gateway.aws.idempotency_keys import IdempotencyKeys, InProgress, KeyClaim, KeyMismatch, StartedTask
from asya.gateway.submission import first_record
from asya.messaging.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender, TooLargeError
from asya.messaging.delivery import Delivery
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.task import TaskRecord
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key as one caller used it: `digest` is of what was asked for."""

    owner: str
    text: str
    digest: str


# Makes the envelope, and where it is to be sent, from the task's id and the time it is created at.
Composer = Callable[[str, datetime], tuple[Envelope, Delivery]]
# Adds to a record what else is to be known of the task before it starts.
Prepare = Callable[[TaskRecord], TaskRecord]


def unchanged(record: TaskRecord) -> TaskRecord:
    """Nothing is to be added."""
    return record


@dataclass(frozen=True)
class TaskStarter:
    """Starts tasks, each at most once per idempotency key."""

    tasks: Tasks
    keys: IdempotencyKeys
    sender: SubmissionSender
    warn: Callable[[str], None]

    def start(self, compose: Composer, owner: str, task_id: str, now: datetime, prepare: Prepare = unchanged) -> str:
        """Start a task; gives its id.

        Args:
            prepare: called before anything is written; again, if the start is finished by a repetition.

        Raises:
            ApiError: 413 if its message is too large, 503 if it could not be sent.
            TaskStoreError: if its record could not be written; nothing has been sent.
        """
        envelope, delivery = compose(task_id, now)
        if not envelope.is_stealth:
            self.tasks.create(prepare(first_record(envelope, owner)), now)
        try:
            self.sender.send(delivery)
        except NotSentError as error:
            self._attempt(lambda: self.tasks.withdraw(task_id))
            if isinstance(error, TooLargeError):
                raise ApiError(413, "too_large", str(error), "payload") from error
            self.warn(f"task {task_id} was not started: {error}")
            raise ApiError(503, "not_sent", "the task was not started: its queue refused it", "actor") from error
        except MaybeSentError as error:
            self.warn(f"task {task_id} may or may not have been started: {error}")
            problem = f"task {task_id} may or may not have been started: its queue gave no answer"
            raise ApiError(503, "maybe_sent", problem) from error
        return task_id

    def start_once(self, compose: Composer, key: Key, task_id: str, now: datetime, prepare: Prepare = unchanged) -> str:
        """Start a task unless this key has started it before; gives the id it has then.

        Raises:
            ApiError: as `start`; 409 if the key was used for something else, or is in use at this moment.
            TaskStoreError: if the table cannot be reached; nothing has been sent.
        """
        match self.keys.claim(key.owner, key.text, key.digest, task_id, now):
            case StartedTask(task_id=started):
                return started
            case InProgress():
                problem = "another request with this Idempotency-Key is at work; repeat this one in a while"
                raise ApiError(409, "idempotency_in_progress", problem, "Idempotency-Key", retry_after=5)
            case KeyMismatch():
                problem = "this Idempotency-Key was used before, for a different request"
                raise ApiError(409, "idempotency_mismatch", problem, "Idempotency-Key")
            case KeyClaim(task_id=claimed, created_at=created_at):
                return self._start_claimed(compose, key, claimed, created_at, prepare)

    def task_of(self, owner: str, key: str) -> str | None:
        """The task that this key has started, or is about to; None if there is none.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        return self.keys.task_of(owner, key)

    def _start_claimed(self, compose: Composer, key: Key, task_id: str, created_at: datetime, prepare: Prepare) -> str:
        try:
            self.start(compose, key.owner, task_id, created_at, prepare)
        except (ApiError, TaskStoreError) as error:
            if not isinstance(error.__cause__, MaybeSentError):
                self._attempt(lambda: self.keys.release(key.owner, key.text))
            raise
        # Failing here is no reason to tell the caller that it failed: the task runs.
        self._attempt(lambda: self.keys.finish(key.owner, key.text))
        return task_id

    def _attempt(self, tidying: Callable[[], None]) -> None:
        """Do what makes things tidier for those who come later, but decides nothing for this caller."""
        try:
            tidying()
        except TaskStoreError as error:
            self.warn(str(error))
