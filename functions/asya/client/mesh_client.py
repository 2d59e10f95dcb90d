"""A client of a mesh: sends envelopes, calls the gateway, reads stored objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec
import urllib3

from asya.capabilities.dead_letters.http_calls import DISMISS, REDRIVE, REPLAY
from asya.capabilities.dead_letters.redrive import Redriven
from asya.capabilities.dead_letters.replay import Replayed, ReplayRequest
from asya.capabilities.dead_letters.settlements import Dismissed, DismissRequest
from asya.capabilities.pauses.http_calls import RESUME
from asya.client.answers import Ended, FieldsAnswer, InvalidInputError, Started, decode, refusal
from asya.client.calls import to
from asya.client.connection import signable, signed_headers
from asya.client.errors import InvalidAnswersError, MeshError, NotFoundError, UnreachableError
from asya.client.resources import put_data, read_object, send_envelope
from asya.protocol.keys import CANCELED_PREFIX, PAUSED_PREFIX, SUMP_PREFIX, safe_segment
from asya.protocol.mesh_table import Sink
from asya.protocol.times import format_time
from asya.tasks.http_calls import CALL_TOOL, CANCEL, EVENTS, TASK, TASKS, TIMELINE
from asya.tasks.listing import LARGEST_LIMIT, TaskFilter, TaskList, Timeline
from asya.tasks.reporting.aws.gateway_client import address_of
from asya.tasks.view import TaskView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from asya.client.connection import Connection
    from asya.function.hop import Arrival
    from asya.protocol.envelope import Envelope
    from asya.tasks.listing import TimelineEntry

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0
"""The time limit of a call to the gateway; API Gateway has the same limit."""

DEPLOY_ADVICE = "Deploy the mesh with the version of this command."
"""What to do about a gateway of an earlier version."""

THREADS = 32
"""How many threads of a program call at once without a connection of their own for each call."""

RESULT_PREFIXES = (Sink().succeeded_prefix, Sink().failed_prefix, CANCELED_PREFIX, PAUSED_PREFIX, SUMP_PREFIX)
"""The prefixes to search for the object of an envelope without a record (`protocol §11`, layout `by-id`)."""


class _MissingError(Exception):
    """The gateway answered 404."""


@dataclass(frozen=True)
class StoredObject:
    """An object in S3, byte for byte."""

    uri: str
    body: bytes


@dataclass(frozen=True)
class MeshClient:
    """A client with the user's credentials. Calls to the gateway are not retried; the AWS SDK retries its own."""

    connection: Connection
    _pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(retries=False, maxsize=THREADS), repr=False
    )

    def send(self, envelope: Envelope) -> str:
        """Send an envelope to the current actor of its route and return the id of the SQS message.

        A payload that is too large for a message becomes a claim check (`protocol §4`).

        Raises:
            MeshError: The mesh has no such actor, or AWS fails or denies access.
        """
        return send_envelope(self.connection, envelope)

    def task(self, envelope_id: str) -> TaskView | None:
        """Return a task (`protocol §13`); None if it does not exist or belongs to another owner.

        Raises:
            MeshError: The gateway does not answer, or answers with an error.
        """
        try:
            return decode(self._request(*to(TASK, id=envelope_id)), TaskView)
        except _MissingError:
            return None

    def iter_tasks(self, wanted: TaskFilter, page_size: int = LARGEST_LIMIT) -> Iterator[TaskView]:
        """Read the tasks that the caller may see, newest first (`protocol §13`, lists).

        Args:
            wanted: Which of them.
            page_size: How many tasks a call returns at most, 1 to 100.

        Raises:
            MeshError: The gateway does not answer, or answers with an error.
        """
        for page in self.task_pages(wanted, page_size):
            yield from page.items

    def task_pages(self, wanted: TaskFilter, page_size: int = LARGEST_LIMIT) -> Iterator[TaskList]:
        """Read the pages of a list, as `iter_tasks` does; each is one call, and may have few tasks."""
        query = wanted.parameters() | {"limit": str(page_size)}
        while True:
            page = decode(self._request(*to(TASKS, query)), TaskList)
            # An earlier gateway ignores filters that it does not know, and what follows may replay each task.
            if not all(map(wanted.matches, page.items)):
                raise MeshError(
                    f"the gateway does not know all of these filters: {', '.join(wanted.parameters())}", DEPLOY_ADVICE
                )
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def tasks(self, *, status: str | None, parent: str | None, limit: int) -> list[TaskView]:
        """Return the newest tasks that the caller may see, as `iter_tasks` reads them."""
        size = min(limit, LARGEST_LIMIT)
        return list(islice(self.iter_tasks(TaskFilter(status=status, parent=parent), size), limit))

    def timeline(self, envelope_id: str) -> list[TimelineEntry]:
        """Return the hops of a task with their times, first to last; empty without a task.

        Raises:
            MeshError: The gateway does not answer, or answers with an error.
        """
        hops: list[TimelineEntry] = []
        query: dict[str, str] = {}
        while True:
            try:
                page = decode(self._request(*to(TIMELINE, query, id=envelope_id)), Timeline)
            except _MissingError:
                return hops
            hops += page.items
            if page.next_cursor is None:
                return hops
            query = {"cursor": page.next_cursor}

    def events(self, envelope_id: str, cursor: str) -> bytes | None:
        """Return the new events of a task as text (`protocol §13`); None after its last one.

        The gateway answers at once if there are new events, and else after some seconds.

        Args:
            envelope_id: The id of the task.
            cursor: The id of the last event that was read; empty for all of them.

        Raises:
            NotFoundError: The task does not exist.
            MeshError: The gateway does not answer, or answers with an error.
        """
        query = {"last_event_id": cursor} if cursor else {}
        try:
            return self._request(*to(EVENTS, query, id=envelope_id)) or None
        except _MissingError:
            raise NotFoundError(f"there is no task {envelope_id!r}") from None

    def redrive(self, actor: str, message: Arrival, *, force: bool) -> int | None:
        """Let the gateway send a dead letter again and return its generation; None if it was sent unchanged.

        Args:
            actor: The actor behind the dead-letter queue.
            message: The dead letter as received.
            force: Redrive also if the task succeeded, was canceled, is paused or went on elsewhere.

        Raises:
            ConflictError: The gateway refuses the redrive; the message says why.
            MeshError: The gateway does not answer, or answers with another error.
        """
        query = {
            "actor": actor,
            "message_id": message.message_id,
            "sender": message.sender,
            "sent_at": format_time(message.sent_at),
            "force": "true" if force else "false",
        }
        try:
            answer = self._request(*to(REDRIVE, query), message.body, media_type="application/octet-stream")
        except _MissingError:
            raise MeshError(
                f"the gateway knows no actor {actor!r}, or cannot redrive",
                "Deploy the mesh with the version of this command, and with this actor.",
            ) from None
        return decode(answer, Redriven).generation

    def replay(self, envelope_id: str, request: ReplayRequest, key: str = "") -> Replayed:
        """Start a new task from a stored copy of an envelope.

        Args:
            envelope_id: The id of the task to replay.
            request: Where the replay starts, and whether it is forced.
            key: The idempotency key: a repeated one starts no second task. Empty for none.

        Raises:
            ConflictError: The requested copy does not exist; the message lists the copies that do. Or the task is settled, and
                the message says how.
            MeshError: The task does not exist, or the gateway fails or does not answer.
        """
        try:
            body = msgspec.json.encode(request)
            answer = self._request(*to(REPLAY, id=envelope_id), body, idempotency_key=key)
        except _MissingError:
            raise NotFoundError(f"there is no task {envelope_id!r}") from None
        return decode(answer, Replayed)

    def dismiss(self, envelope_id: str, request: DismissRequest) -> Dismissed:
        """Say that the failure of a task needs no replay, or undo that.

        Raises:
            ConflictError: The task has not failed, or is settled in another way.
            NotFoundError: There is no such task.
            MeshError: The gateway fails or does not answer.
        """
        try:
            answer = self._request(*to(DISMISS, id=envelope_id), msgspec.json.encode(request))
        except _MissingError:
            raise NotFoundError(f"there is no task {envelope_id!r}") from None
        return decode(answer, Dismissed)

    def call_tool(self, name: str, arguments: bytes, key: str = "") -> str:
        """Start the task of a tool and return its id.

        Args:
            name: The name of the tool.
            arguments: A JSON object.
            key: The idempotency key: a repeated one starts no second task. Empty for none.

        Raises:
            NotFoundError: The mesh has no such tool.
            ConflictError: The key was used for another call.
            MeshError: The arguments are invalid, or the gateway fails or does not answer.
        """
        body = b'{"name": ' + msgspec.json.encode(name) + b', "arguments": ' + arguments + b"}"
        try:
            return decode(self._request(*to(CALL_TOOL), body, prefer="wait=0", idempotency_key=key), Started).id
        except _MissingError:
            raise NotFoundError(f"the mesh {self.connection.namespace!r} has no tool {name!r}") from None

    def resume(self, envelope_id: str, answers: bytes, *, since: str | None = None) -> None:
        """Resume a paused task.

        Args:
            envelope_id: The id of the task.
            answers: A JSON object with the answers by field name.
            since: The start of the pause that the answers are for; None for the present pause.

        Raises:
            InvalidAnswersError: The answers are invalid; the task stays paused.
            ConflictError: The task is not paused, or is in a later pause.
            MeshError: The task does not exist, or the gateway fails or does not answer.
        """
        try:
            pause = b"" if since is None else b', "since": ' + msgspec.json.encode(since)
            self._request(*to(RESUME, id=envelope_id), b'{"input": ' + answers + pause + b"}")
        except _MissingError:
            raise NotFoundError(f"there is no task {envelope_id!r}") from None
        except InvalidInputError as error:
            raise InvalidAnswersError(envelope_id, error.fields) from None

    def cancel(self, envelope_id: str) -> str | None:
        """Cancel a task with its children and its job runs. A task that has ended does not change.

        Returns:
            The status in which the task has ended, if its record does not show that yet; otherwise None.

        Raises:
            MeshError: The task does not exist, or the gateway fails or does not answer.
        """
        try:
            answer = self._request(*to(CANCEL, id=envelope_id))
        except _MissingError:
            raise NotFoundError(f"there is no task {envelope_id!r}") from None
        return decode(answer, Ended).status if answer else None

    def stored(self, envelope_id: str, result_uri: str | None = None) -> StoredObject | None:
        """Return the stored envelope, from the URI in the record or else from the default keys; None without one.

        Raises:
            MeshError: S3 fails or denies access.
        """
        for uri in [result_uri] if result_uri else self._default_uris(envelope_id):
            body = self.fetch(uri)
            if body is not None:
                return StoredObject(uri, body)
        return None

    def fetch(self, uri: str) -> bytes | None:
        """Return the bytes of an object; None if it does not exist.

        Raises:
            MeshError: S3 fails or denies access.
        """
        parts = urlsplit(uri)
        return read_object(self.connection, parts.netloc, parts.path.lstrip("/"))

    def upload(self, reference: str, body: bytes | BinaryIO) -> str:
        """Write a file to the data of the mesh, as `put_data` does."""
        return put_data(self.connection, reference, body)

    def ask(self, method: str, path: str, answer: type[T], body: bytes = b"", key: str = "") -> T | None:
        """Call the gateway and decode its answer; None for what it does not know.

        Args:
            method: The method of HTTP.
            path: The path with its query.
            answer: The type of the answer.
            body: JSON; empty for none.
            key: The idempotency key; empty for none.

        Raises:
            MeshError: The gateway does not answer, or answers with an error.
        """
        try:
            return decode(self._request(method, path, body, idempotency_key=key), answer)
        except _MissingError:
            return None

    def _default_uris(self, envelope_id: str) -> Iterator[str]:
        for prefix in RESULT_PREFIXES:
            yield f"{self.connection.results.uri}{prefix}{safe_segment(envelope_id)}.json"

    def _request(
        self, method: str, path: str, body: bytes = b"", *, media_type: str = "application/json", **headers: str
    ) -> bytes:
        given = {"content-type": media_type} if body else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items() if value}
        status, answer = self.exchange(method, path, body, given)
        if status == 404:
            raise _MissingError(path)
        if status < 300:
            return answer
        if status == 422:
            raise InvalidInputError(decode(answer, FieldsAnswer).error)
        raise refusal(status, answer)

    def exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Sign and send one request to the gateway; return the status code and the body of its answer.

        Raises:
            UnreachableError: The gateway did not answer.
        """
        url = signable(self.connection.gateway_url + path)
        signed = signed_headers(self.connection, method, url, body, headers)
        try:
            answer = self._pool.request(
                method, address_of(url), body=body, headers=signed, timeout=TIMEOUT_SECONDS, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"the gateway did not answer ({url}): {error}") from error
        return answer.status, answer.data
