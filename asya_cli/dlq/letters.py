"""Scans the dead-letter queues of a mesh and redrives dead letters in a new generation (`protocol §12`).

Dead letters of reports are counted, and sent to their queues again (`protocol §4`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from asya.capabilities.dead_letters import letters as dead_letters
from asya.capabilities.dead_letters.aws.letters import DeadLetterQueue, ReceivedMessage
from asya.capabilities.dead_letters.settlements import SETTLED
from asya.capabilities.operations.dead_letters import envelope_of, letter_id
from asya.client.errors import ConflictError, MeshError
from asya.function.aws.missing_queues import is_missing_queue
from asya.protocol import names
from asya_cli.aws_errors import aws_errors, deployed_actors, meant
from asya_cli.errors import CommandError, ExitCode
from asya_cli.options import completed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from asya.capabilities.dead_letters.letters import DeadLetter
    from asya.client.mesh_client import MeshClient
    from asya.protocol.envelope import Envelope
    from asya.tasks.view import TaskView

HIDE_SECONDS = 300
"""Visibility timeout of a message during a scan. The end of the scan makes it visible again at once."""

_DLQ = "-dlq"
_NAMESPACE_TAG = "asya:namespace"


@dataclass(frozen=True)
class QueuedLetter:
    """A dead letter as received from its queue."""

    seen: ReceivedMessage
    read: DeadLetter

    @property
    def actor(self) -> str:
        """The actor or system function that the message was sent to."""
        return self.read.actor

    @property
    def envelope(self) -> Envelope | None:
        """The envelope in the message; None if the message has no valid envelope."""
        return envelope_of(self.read)

    @property
    def generation(self) -> int:
        """The generation of the envelope; 0 without an envelope."""
        return self.envelope.generation if self.envelope else 0

    @property
    def id(self) -> str:
        """The id of the envelope or of its task; the id of the SQS message if the message belongs to no task."""
        return letter_id(self.read)


@dataclass(frozen=True)
class Filter:
    """Selects dead letters. An empty field selects all.

    Attributes:
        id: The id of the envelope or of the SQS message.
        text: Part of the reason or the error of the envelope or of its task. Case does not matter.
        since: When the message was sent, at the earliest.
    """

    id: str = ""
    text: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class RedriveResult:
    """The outcome of one redrive.

    Attributes:
        generation: The generation in which the envelope was sent; None if the message was sent unchanged.
        problem: Why the message stays in its dead-letter queue; empty after a success.
        is_settled: Whether it stays because its task was replayed, dismissed or overtaken.
    """

    letter: QueuedLetter
    generation: int | None = None
    problem: str = ""
    is_settled: bool = False


class DeadLetters:
    """The dead-letter queues of one mesh, with an operator's credentials.

    Args:
        mesh: The mesh.
        options: The options that select it, as typed; messages name commands with them.
    """

    def __init__(self, mesh: MeshClient, options: str = "") -> None:
        self._mesh = mesh
        self.options = options
        self._sqs = mesh.connection.sqs()
        self._namespace = mesh.connection.namespace
        # A message that this process has redriven may fail and return during the scan. This scan skips it.
        self._redriven: set[tuple[str, str, int]] = set()

    def actors(self) -> list[str]:
        """Return every actor and system function with dead letters, in alphabetical order; without those of reports.

        The counts of SQS may be a minute old.

        Raises:
            CommandError: SQS fails or denies access.
        """
        return [name for name in self._with_dead_letters() if name not in names.REPORT_QUEUES]

    def report_queues(self) -> list[str]:
        """Return the queues of reports with dead letters.

        Raises:
            CommandError: SQS fails or denies access.
        """
        return [name for name in self._with_dead_letters() if name in names.REPORT_QUEUES]

    def _with_dead_letters(self) -> list[str]:
        start = names.queue_name(self._namespace, "")
        with aws_errors("cannot list the queues of the mesh"):
            pages = self._sqs.get_paginator("list_queues").paginate(QueueNamePrefix=start)
            urls = [url for page in pages for url in page.get("QueueUrls", []) if url.endswith(_DLQ)]
            nonempty = [url for url in urls if self._is_own(url) and DeadLetterQueue(self._sqs, url).count().total]
        return sorted(url.rpartition("/")[2].removeprefix(start).removesuffix(_DLQ) for url in nonempty)

    def _is_own(self, url: str) -> bool:
        """Check the tag of a queue: the queue names of a mesh `shop-test` start like those of `shop`."""
        tags = self._sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
        return tags.get(_NAMESPACE_TAG, self._namespace) == self._namespace

    def hidden_count(self, actor: str) -> int:
        """Return the approximate number of messages that are hidden by another reader.

        Raises:
            CommandError: SQS fails or denies access.
        """
        with aws_errors(f"cannot count the dead letters of {actor}"):
            return self._queue(actor).count().hidden

    @contextmanager
    def scan(self, actor: str, selection: Filter) -> Iterator[Iterator[QueuedLetter]]:
        """Iterate over the selected dead letters of an actor. At the end all others become visible again.

        Raises:
            CommandError: The queue does not exist, or SQS fails or denies access.
        """
        with aws_errors(f"cannot read the dead letters of {actor}"):
            queue = self._queue(actor)
            seen: list[str] = []  # their handles: the bodies may be larger than the memory
            try:
                yield self._selected(queue, actor, selection, seen)
            finally:
                queue.release(seen)

    def _selected(
        self, queue: DeadLetterQueue, actor: str, selection: Filter, seen: list[str]
    ) -> Iterator[QueuedLetter]:
        for batch in queue.scan(hide_seconds=HIDE_SECONDS):
            seen += [message.receipt_handle for message in batch]
            for each in batch:
                letter = QueuedLetter(each, dead_letters.read_letter(each.arrival, actor, each.problem))
                if self._matches(letter, selection):
                    yield letter

    def _matches(self, letter: QueuedLetter, selection: Filter) -> bool:
        if _redrive_key(letter, letter.generation) in self._redriven:
            return False
        if selection.id and selection.id not in (letter.id, letter.seen.message_id):
            return False
        if selection.since is not None and letter.seen.arrival.sent_at < selection.since:
            return False
        return not selection.text or selection.text.casefold() in self._error_text(letter).casefold()

    def _error_text(self, letter: QueuedLetter) -> str:
        status = letter.envelope.status if letter.envelope else None
        task = self.task(letter)
        texts = [status.reason if status else None, task.reason if task else None, letter.read.problem]
        for error in (status.error if status else None, task.error if task else None):
            texts += [error.type, error.message] if error else []
        return "\n".join(filter(None, texts))

    def task(self, letter: QueuedLetter) -> TaskView | None:
        """Return the task of a dead letter; None without a record."""
        return self._mesh.task(letter.id) if letter.read.envelope is not None else None

    def redrive(self, letter: QueuedLetter, *, force: bool) -> RedriveResult:
        """Let the gateway send the dead letter again, then delete the message.

        The steps are safe to repeat. A second redrive after a crash sends the envelope twice in one generation, as SQS
        itself may do.

        Raises:
            CommandError: The gateway or SQS fails or denies access.
        """
        try:
            generation = self._mesh.redrive(letter.actor, letter.seen.arrival, force=force)
        except ConflictError as error:
            problem = completed(error.problem, self.options)
            return RedriveResult(letter, problem=problem, is_settled=error.code in SETTLED)
        self._redriven.add(_redrive_key(letter, letter.generation if generation is None else generation))
        with aws_errors(f"cannot delete the dead letter {letter.seen.message_id} of {letter.actor}"):
            self._queue(letter.actor).delete(letter.seen)
        return RedriveResult(letter, generation)

    def _queue(self, actor: str) -> DeadLetterQueue:
        if actor in names.REPORT_QUEUES:
            raise CommandError(
                f"the dead letters of {actor} are reports, which are no envelopes",
                f"`asya dlq reports replay{self.options}` sends them to their queue again.",
            )
        name = names.dlq_name(self._namespace, actor)
        try:
            return DeadLetterQueue(self._sqs, self._sqs.get_queue_url(QueueName=name)["QueueUrl"])
        except ClientError as error:
            if is_missing_queue(error):
                known = deployed_actors(self._mesh.connection)
                raise CommandError(
                    f"the mesh {self._namespace!r} has no dead-letter queue for an actor {actor!r}{meant(actor, known)}",
                    f"`asya dlq list{self.options}` shows every actor with dead letters.",
                    ExitCode.NOT_FOUND,
                ) from None
            raise


def _redrive_key(letter: QueuedLetter, generation: int) -> tuple[str, str, int]:
    return (letter.actor, letter.id, generation)


"""Visibility timeout of a message during a scan. The end of the scan makes it visible again at once."""


class ReportLetters:
    """The dead-letter queues of a mesh's reports, with an operator's credentials. The gateway sends.

    Raises:
        CommandError: from each method, if a queue does not exist, or SQS or the gateway fails or denies access.
    """

    def __init__(self, mesh: MeshClient) -> None:
        self._mesh = mesh
        self._sqs: Any = mesh.connection.sqs()
        self._namespace = mesh.connection.namespace

    def count(self, name: str) -> int:
        """Return the number of dead letters behind a queue; all of them stay."""
        with self._scan(name) as batches:
            return sum(map(len, batches))

    def replay(self, name: str) -> int:
        """Send the dead letters behind a queue to it again, delete each one, and return their number.

        A crash between the two repeats the send at the next call.
        """
        queue = self._dead_letters(name)
        count = 0
        with self._scan(name) as batches:
            for message in (each for batch in batches for each in batch):
                advice = (
                    f"{name}: {count} sent again. The others stay in their queue; repair the cause, and run it again."
                )
                try:
                    self._mesh.redrive(name, message.arrival, force=False)
                except MeshError as error:
                    problem = f"cannot send the dead letter {message.message_id} of {name}: {error.problem}"
                    raise CommandError(problem, advice) from error
                count += 1
                problem = (
                    f"cannot delete the dead letter {message.message_id} of {name}, which has been sent; the next "
                )
                with aws_errors(f"{problem}replay sends it once more, which changes nothing"):
                    queue.delete(message)
        return count

    @contextmanager
    def _scan(self, name: str) -> Iterator[Iterator[list[ReceivedMessage]]]:
        """Iterate over the dead letters in batches. At the end those that are left become visible again."""
        queue = self._dead_letters(name)
        seen: list[str] = []

        def batches() -> Iterator[list[ReceivedMessage]]:
            for batch in queue.scan(hide_seconds=HIDE_SECONDS):
                seen.extend(message.receipt_handle for message in batch)
                yield batch

        with aws_errors(f"cannot read the dead letters of {name}"):
            try:
                yield batches()
            finally:
                queue.release(seen)

    def _dead_letters(self, name: str) -> DeadLetterQueue:
        return DeadLetterQueue(self._sqs, self._url(names.dlq_name(self._namespace, name)))

    def _url(self, queue: str) -> str:
        with aws_errors(f"cannot find the queue {queue}"):
            try:
                return str(self._sqs.get_queue_url(QueueName=queue)["QueueUrl"])
            except ClientError as error:
                if is_missing_queue(error):
                    raise CommandError(
                        f"the mesh {self._namespace!r} has no queue {queue}",
                        "A mesh of an earlier version reports without queues: deploy it again.",
                    ) from None
                raise
