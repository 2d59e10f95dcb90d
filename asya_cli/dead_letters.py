"""The dead letters of a mesh: found, told about, and sent again in a new generation (`protocol §12`)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.dead_letters import letters as dead_letters
from asya.dead_letters import redrive
from asya.dead_letters.aws.queue import DeadLetterQueue, Seen
from asya.dead_letters.redrive import Reopening, SliceOf
from asya.protocol import names
from asya.protocol.codec import encode
from asya.protocol.envelope import GENERATION_LIMIT
from asya.protocol.headers import PAYLOAD_REF
from asya.protocol.slices import slice_header
from asya_cli.errors import CommandError
from asya_cli.mesh_client import NotSendableError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from asya.dead_letters.letters import DeadLetter
    from asya.protocol.envelope import Envelope
    from asya.tasks.view import TaskView
    from asya_cli.mesh_client import MeshClient

HIDE_SECONDS = 300
"""How long a message is hidden from others while it is looked at; it is put back as soon as that is over."""

_DLQ = "-dlq"
_NAMESPACE_TAG = "asya:namespace"


@dataclass(frozen=True)
class Letter:
    """A message, what it carries, and the queue it lies behind."""

    seen: Seen
    read: DeadLetter

    @property
    def actor(self) -> str:
        """Whose message it was."""
        return self.read.actor

    @property
    def envelope(self) -> Envelope | None:
        """What it carries; None if that is no envelope."""
        return self.read.envelope if self.read.readable else None

    @property
    def generation(self) -> int:
        """Of the envelope; 0 of whatever is none."""
        return self.envelope.generation if self.envelope else 0

    @property
    def id(self) -> str:
        """The envelope's id, or the one that its task has if it cannot be read; the SQS message's if it is about no task."""
        return self.read.envelope.id if self.read.envelope else self.seen.message_id


@dataclass(frozen=True)
class Wanted:
    """Which dead letters are meant. Empty: all.

    Attributes:
        id: Of the envelope, or of the SQS message.
        text: To be found in the reason or the error, be it the envelope's or its task's; upper and lower case are the same.
    """

    id: str = ""
    text: str = ""


@dataclass(frozen=True)
class Redriven:
    """What became of one dead letter.

    Attributes:
        generation: It was, or would be, sent in; None where it goes as it is.
        problem: Why it was left where it is; empty if it was not.
    """

    letter: Letter
    generation: int | None = None
    problem: str = ""


class DeadLetters:
    """The dead-letter queues of one mesh, with an operator's credentials."""

    def __init__(self, mesh: MeshClient) -> None:
        self._mesh = mesh
        self._sqs = mesh.connection.sqs()
        self._namespace = mesh.connection.namespace
        # What this process has sent: should it come back while the loop is at it, it is for the next loop.
        self._sent: set[tuple[str, str, int]] = set()

    def actors(self) -> list[str]:
        """Every actor and system function whose dead-letter queue holds something, in alphabetical order.

        SQS may be a minute behind; whoever knows better names the actor.

        Raises:
            CommandError: SQS did not answer, or refused.
        """
        start = names.queue_name(self._namespace, "")
        with _told("the queues of the mesh could not be listed"):
            pages = self._sqs.get_paginator("list_queues").paginate(QueueNamePrefix=start)
            urls = [url for page in pages for url in page.get("QueueUrls", []) if url.endswith(_DLQ)]
            found = [url for url in urls if self._is_own(url) and DeadLetterQueue(self._sqs, url).count().total]
        return sorted(url.rpartition("/")[2].removeprefix(start).removesuffix(_DLQ) for url in found)

    def _is_own(self, url: str) -> bool:
        """A mesh `shop-test` has queues whose names begin like those of `shop`; the tag tells them apart."""
        tags = self._sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
        return tags.get(_NAMESPACE_TAG, self._namespace) == self._namespace

    def hidden(self, actor: str) -> int:
        """About how many messages nobody can see just now, because somebody looks at them.

        Raises:
            CommandError: SQS did not answer, or refused.
        """
        with _told(f"the dead letters of {actor} could not be counted"):
            return self._queue(actor).count().hidden

    @contextmanager
    def look(self, actor: str, wanted: Wanted) -> Iterator[Iterator[Letter]]:
        """The dead letters behind an actor's queue that are wanted; those that are not taken away are put back at the end.

        Raises:
            CommandError: There is no such queue; SQS did not answer, or refused.
        """
        with _told(f"the dead letters of {actor} could not be looked at"):
            queue = self._queue(actor)
            seen: list[Seen] = []
            try:
                yield self._wanted(queue, actor, wanted, seen)
            finally:
                queue.put_back(seen)

    def _wanted(self, queue: DeadLetterQueue, actor: str, wanted: Wanted, seen: list[Seen]) -> Iterator[Letter]:
        for some in queue.look(hide_seconds=HIDE_SECONDS):
            seen += some
            for each in some:
                letter = Letter(each, dead_letters.read(each.arrival, actor))
                if self._is_wanted(letter, wanted):
                    yield letter

    def _is_wanted(self, letter: Letter, wanted: Wanted) -> bool:
        if _name(letter, letter.generation) in self._sent:
            return False
        if wanted.id and wanted.id not in (letter.id, letter.seen.message_id):
            return False
        return not wanted.text or wanted.text.casefold() in self._about(letter).casefold()

    def _about(self, letter: Letter) -> str:
        status = letter.envelope.status if letter.envelope else None
        task = self.task(letter)
        words = [status.reason if status else None, task.reason if task else None]
        for error in (status.error if status else None, task.error if task else None):
            words += [error.type, error.message] if error else []
        return "\n".join(filter(None, words))

    def task(self, letter: Letter) -> TaskView | None:
        """The record of what it carries; None if there is none."""
        return self._mesh.task(letter.id) if letter.read.envelope is not None else None

    def redrive(self, letter: Letter, *, force: bool, now: datetime) -> Redriven:
        """Reopen its task, send it in the next generation, and only then remove it.

        Should this process die after the reopening, doing it again finds the task reopened and sends; should it die after the
        sending, the message is sent twice in the same generation, as SQS itself may do.

        Raises:
            CommandError: The status endpoint or SQS did not answer, or refused for another reason than the task.
        """
        try:
            generation = self._generation(letter, force=force, now=now)
        except (NotSendableError, RefusedError) as error:
            return Redriven(letter, problem=error.problem)
        body = letter.seen.arrival.body
        if letter.envelope is not None and generation is not None:
            body = self._message(letter, redrive.redriven(letter.envelope, generation, now=now))
        self._sent.add(_name(letter, letter.generation if generation is None else generation))
        with _told(f"the dead letter {letter.seen.message_id} could not be sent again"):
            self._send(letter, body)
            self._queue(letter.actor).remove(letter.seen)
        return Redriven(letter, generation)

    def _generation(self, letter: Letter, *, force: bool, now: datetime) -> int | None:
        """The generation to send it in; None if it goes as it is, for there is no task to be run again."""
        envelope = letter.envelope
        if envelope is None or redrive.is_at_rest(envelope):
            return None
        if redrive.is_past_deadline(envelope, now):
            raise RefusedError("its deadline has passed; replay it: that gives it a new one")
        following = min(envelope.generation + 1, GENERATION_LIMIT)
        # Whether it can be sent at all shows now: once its task is reopened, that waits for it.
        self._message(letter, redrive.redriven(envelope, following, now=now))
        if envelope.is_stealth:
            return following
        asked = Reopening(
            generation=envelope.generation,
            position=envelope.route.position,
            slice=_slice_of(envelope),
            force=force,
        )
        reopened = self._mesh.reopen(envelope.id, asked)
        return following if reopened is None else reopened

    def _message(self, letter: Letter, envelope: Envelope) -> bytes:
        """It may have grown beyond what a message may be. A payload that was put aside stays where it is."""
        if PAYLOAD_REF in envelope.headers:
            return encode(envelope)
        with _told(f"the payload of the dead letter {letter.seen.message_id} could not be put aside"):
            return self._mesh.sendable(envelope, self._url(letter))

    def _url(self, letter: Letter) -> str:
        return self._sqs.get_queue_url(QueueName=names.queue_name(self._namespace, letter.actor))["QueueUrl"]

    def _send(self, letter: Letter, body: bytes) -> None:
        url = self._url(letter)
        text = body.decode("utf-8", "surrogatepass")
        if letter.seen.group:
            self._sqs.send_message(QueueUrl=url, MessageBody=text, MessageGroupId=letter.seen.group)
        else:
            self._sqs.send_message(QueueUrl=url, MessageBody=text)

    def _queue(self, actor: str) -> DeadLetterQueue:
        name = names.dlq_name(self._namespace, actor)
        try:
            return DeadLetterQueue(self._sqs, self._sqs.get_queue_url(QueueName=name)["QueueUrl"])
        except ClientError as error:
            if error.response["Error"]["Code"].endswith(("NonExistentQueue", "QueueDoesNotExist")):
                raise CommandError(
                    f"the mesh {self._namespace!r} has no dead-letter queue of an actor {actor!r}"
                ) from None
            raise


def _name(letter: Letter, generation: int) -> tuple[str, str, int]:
    return (letter.actor, letter.id, generation)


def _slice_of(envelope: Envelope) -> SliceOf | None:
    try:
        header = slice_header(envelope)
    except ValueError:
        return None
    if header is None:
        return None
    return SliceOf(set_id=header.set_id, slice_index=header.slice_index, origin_id=header.origin_id)


@contextmanager
def _told(problem: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CommandError(f"{problem}: {error}") from error
