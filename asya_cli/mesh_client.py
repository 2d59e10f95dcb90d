"""What an operator does with a mesh: send to it, ask how a task is, fetch what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from asya.dead_letters.redrive import Reopened, Reopening
from asya.dead_letters.replay import Replayed, ReplayRequest
from asya.messaging.aws.claim_check import INBOX_PREFIX, ClaimCheck, EnvelopeTooLargeError
from asya.messaging.delivery import Delivery
from asya.protocol import names
from asya.protocol.codec import encode
from asya.protocol.keys import CANCELED_PREFIX, PAUSED_PREFIX, SUMP_PREFIX, safe_segment
from asya.reporting.aws.gateway_client import address_of
from asya.tasks.listing import LARGEST_LIMIT, TaskList, Timeline
from asya.tasks.view import TaskView
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.protocol.envelope import Envelope
    from asya.tasks.timeline import TimelineEntry
    from asya_cli.connection import Connection

SECONDS = 30.0
"""How long the status endpoint may take to answer: an HTTP API never takes longer."""

USUAL_PREFIXES = ("succeeded/", "failed/", CANCELED_PREFIX, PAUSED_PREFIX, SUMP_PREFIX)
"""Where an envelope's object is looked for when no record tells (`protocol §11`, layout `by-id`)."""

T = TypeVar("T")

_NOT_THERE = frozenset({"404", "NoSuchKey", "NotFound"})


class NotThereError(Exception):
    """The status endpoint knows nothing of that id."""


class RefusedError(CommandError):
    """The status endpoint understood, and would not: it says why."""


class NotSendableError(CommandError):
    """An envelope that is too large for a message even without its payload."""


class InvalidAnswersError(CommandError):
    """The answers to a pause do not fit what it asks for; the task stays paused.

    Args:
        fields: What is wrong, by field.
    """

    def __init__(self, envelope_id: str, fields: dict[str, str]) -> None:
        told = "\n".join(f"  {name}: {problem}" for name, problem in fields.items())
        super().__init__(f"task {envelope_id!r} stays paused: the input does not answer what it asks for", told)
        self.fields = fields


@dataclass(frozen=True)
class StoredObject:
    """An object in S3, byte for byte."""

    uri: str
    body: bytes


@dataclass(frozen=True)
class MeshClient:
    """One mesh, asked with an operator's credentials. Nothing is tried twice but by the AWS SDK."""

    connection: Connection
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False), repr=False)

    def send(self, envelope: Envelope) -> str:
        """Send an envelope to the actor its route names; returns the id of the SQS message.

        A payload that is too large for a message goes through the mesh's bucket (`protocol §4`).

        Raises:
            CommandError: The mesh has no such actor, or AWS did not take it.
        """
        actor = envelope.route.curr
        sqs = self.connection.sqs()
        try:
            url = sqs.get_queue_url(QueueName=names.queue_name(self.connection.namespace, actor))["QueueUrl"]
            body = self.sendable(envelope, url)
            return sqs.send_message(QueueUrl=url, MessageBody=body.decode())["MessageId"]
        except ClientError as error:
            if error.response["Error"]["Code"].endswith(("NonExistentQueue", "QueueDoesNotExist")):
                raise CommandError(
                    f"the mesh {self.connection.namespace!r} has no actor {actor!r}", "The mesh file lists the actors."
                ) from None
            raise CommandError(f"the message for {actor} was not sent: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"the message for {actor} was not sent: {error}") from error

    def sendable(self, envelope: Envelope, queue_url: str) -> bytes:
        """The message of an envelope. A payload that is too large for it is put into the mesh's bucket (`protocol §4`).

        Raises:
            NotSendableError: It is too large even without its payload.
            ClientError, BotoCoreError: S3 does not take the payload.
        """
        problem = f"the envelope is too large for a message even without its payload ({envelope.id})"
        try:
            delivery = self._claim_check(queue_url).offload(Delivery(envelope.route.curr, encode(envelope), "next"))
        except EnvelopeTooLargeError:
            raise NotSendableError(problem) from None
        if delivery.actor != envelope.route.curr:
            raise NotSendableError(problem)
        return delivery.body

    def _claim_check(self, queue_url: str) -> ClaimCheck:
        """Where payloads go that are too large for a message: the mesh's own bucket, which is named after its account."""
        account = queue_url.split("/")[-2]
        bucket = names.bucket_name(self.connection.namespace, account, self.connection.region)
        return ClaimCheck(self.connection.s3(), bucket, prefix=INBOX_PREFIX)

    def task(self, envelope_id: str) -> TaskView | None:
        """The task's record (`protocol §13`); None if there is none, or it is somebody else's.

        Raises:
            CommandError: The status endpoint did not answer, or refused.
        """
        try:
            return _understood(self._ask("GET", _path(envelope_id)), TaskView)
        except NotThereError:
            return None

    def tasks(self, *, status: str | None, parent: str | None, limit: int) -> list[TaskView]:
        """The newest tasks that the caller may see (`protocol §13`, lists).

        Raises:
            CommandError: The status endpoint did not answer, or refused.
        """
        found: list[TaskView] = []
        query = {"status": status, "parent": parent, "cursor": None}
        while True:
            given = {name: value for name, value in query.items() if value is not None}
            page_size = str(min(limit - len(found), LARGEST_LIMIT))
            answer = self._ask("GET", f"/api/v1/mesh?{urlencode(given | {'limit': page_size})}")
            page = _understood(answer, TaskList)
            found += page.items
            if page.next_cursor is None or len(found) >= limit:
                return found
            query["cursor"] = page.next_cursor

    def timeline(self, envelope_id: str) -> list[TimelineEntry]:
        """A task's hops with their times, first to last; empty if there is no task.

        Raises:
            CommandError: The status endpoint did not answer, or refused.
        """
        found: list[TimelineEntry] = []
        query = ""
        while True:
            try:
                page = _understood(self._ask("GET", f"{_path(envelope_id)}/timeline{query}"), Timeline)
            except NotThereError:
                return found
            found += page.items
            if page.next_cursor is None:
                return found
            query = "?" + urlencode({"cursor": page.next_cursor})

    def reopen(self, envelope_id: str, asked: Reopening) -> int | None:
        """Begin the next generation of a task, for a dead letter that is about to be sent; None if there is no task.

        Raises:
            RefusedError: The task is better left alone; the message says why.
            CommandError: The status endpoint did not answer, or refused.
        """
        try:
            answer = self._ask("POST", f"{_path(envelope_id)}/reopen", msgspec.json.encode(asked))
        except NotThereError:
            return None
        return _understood(answer, Reopened).generation

    def replay(self, envelope_id: str, asked: ReplayRequest) -> Replayed:
        """Start a new task from what is kept of an envelope.

        Raises:
            RefusedError: There is nothing it can be started from there; the message lists what there is.
            CommandError: The status endpoint did not answer, or refused.
        """
        try:
            answer = self._ask("POST", f"{_path(envelope_id)}/replay", msgspec.json.encode(asked))
        except NotThereError:
            raise CommandError(f"there is no task {envelope_id!r}") from None
        return _understood(answer, Replayed)

    def resume(self, envelope_id: str, answers: bytes) -> None:
        """Let a paused task go on.

        Args:
            answers: A JSON object: the answers by the fields' names.

        Raises:
            InvalidAnswersError: The answers do not fit; the task stays paused.
            RefusedError: It is not paused (any more).
            CommandError: There is no such task; or the status endpoint did not answer, or refused.
        """
        path = f"{_path(envelope_id)}/resume"
        try:
            self._ask("POST", path, b'{"input": ' + answers + b"}")
        except NotThereError:
            raise CommandError(f"there is no task {envelope_id!r}") from None
        except _InvalidInputError as invalid:
            raise InvalidAnswersError(envelope_id, invalid.fields) from None

    def cancel(self, envelope_id: str) -> None:
        """End a task before its time, with all that came of it; one that has ended stays as it is.

        Raises:
            CommandError: There is no such task; or the status endpoint did not answer, or refused.
        """
        try:
            self._ask("DELETE", _path(envelope_id))
        except NotThereError:
            raise CommandError(f"there is no task {envelope_id!r}") from None

    def stored(self, envelope_id: str, result_uri: str | None = None) -> StoredObject | None:
        """What the mesh keeps of an envelope that ended: the object its record names, else where it would usually lie.

        Raises:
            CommandError: S3 did not answer, or refused.
        """
        for uri in [result_uri] if result_uri else self._usual_uris(envelope_id):
            body = self.fetch(uri)
            if body is not None:
                return StoredObject(uri, body)
        return None

    def fetch(self, uri: str) -> bytes | None:
        """An object's bytes; None if there is none.

        Raises:
            CommandError: S3 did not answer, or refused.
        """
        parts = urlsplit(uri)
        try:
            return self.connection.s3().get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise CommandError(f"{uri} could not be read: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"S3 was not reached: {error}") from error

    def upload(self, reference: str, body: bytes) -> None:
        """Put a file into the mesh's data, where payloads can refer to it.

        Raises:
            CommandError: S3 did not answer, or refused.
        """
        place = self.connection.data
        try:
            self.connection.s3().put_object(Bucket=place.bucket, Key=place.prefix + reference, Body=body)
        except (ClientError, BotoCoreError) as error:
            raise CommandError(f"{place.uri}{reference} could not be written: {error}") from error

    def _usual_uris(self, envelope_id: str) -> Iterator[str]:
        for prefix in USUAL_PREFIXES:
            yield f"{self.connection.results.uri}{prefix}{safe_segment(envelope_id)}.json"

    def _ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        status, answer = self._call(method, path, body)
        if status == 404:
            raise NotThereError(path)
        if status < 300:
            return answer
        problem = _problem(answer)
        if status == 409 and problem:
            raise RefusedError(problem)
        if status == 422:
            raise _InvalidInputError(_understood(answer, _FieldsAnswer).error)
        advice = "Your credentials need execute-api:Invoke on the mesh's API." if status == 403 else ""
        said = problem or answer[:300].decode("utf-8", "replace")
        raise CommandError(f"the status endpoint answered {status}: {said}", advice)

    def _call(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        url = self.connection.gateway_url + path
        credentials = self.connection.session.get_credentials()
        if credentials is None:
            raise CommandError("there are no AWS credentials", "Configure them as for the AWS command line.")
        headers = {"host": urlsplit(url).netloc} | ({"content-type": "application/json"} if body else {})
        request = AWSRequest(method, url, data=body, headers=headers)
        SigV4Auth(credentials, "execute-api", self.connection.region).add_auth(request)
        try:
            answer = self._pool.request(
                method,
                address_of(url),
                body=body,
                headers=dict(request.headers.items()),
                timeout=SECONDS,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise CommandError(f"the status endpoint did not answer ({url}): {error}") from error
        return answer.status, answer.data


class _Problem(msgspec.Struct):
    message: str = ""


class _Answer(msgspec.Struct):
    error: _Problem


class _FieldProblem(msgspec.Struct):
    name: str
    message: str


class _FieldProblems(msgspec.Struct):
    fields: tuple[_FieldProblem, ...] = ()


class _FieldsAnswer(msgspec.Struct):
    error: _FieldProblems


class _InvalidInputError(Exception):
    """The status endpoint names fields that are wrong."""

    def __init__(self, problems: _FieldProblems) -> None:
        super().__init__()
        self.fields = {each.name: each.message for each in problems.fields}


def _path(envelope_id: str) -> str:
    return f"/api/v1/mesh/{quote(envelope_id, safe='')}"


def _understood(answer: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError as error:
        raise CommandError(f"the status endpoint's answer is not understood: {error}") from error


def _problem(answer: bytes) -> str:
    """What an error answer says to people; empty if it is none of the mesh's own."""
    try:
        return msgspec.json.decode(answer, type=_Answer).error.message
    except msgspec.MsgspecError:
        return ""
