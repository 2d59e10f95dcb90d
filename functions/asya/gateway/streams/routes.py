"""HTTP routes of streams and stream tokens, in the current and the legacy formats (`protocol §13`, `§14`).

`GET /api/v1/mesh/{id}/events` is signed. Clients that cannot sign, such as EventSource, call
`GET /api/v1/mesh/{id}/stream?token=…` with a token from `POST …/stream-token`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import msgspec

from asya.capabilities.legacy.tasks import legacy_envelope, legacy_job
from asya.function.aws import clients
from asya.function.lambdas.function import Function
from asya.gateway.access import AccessRules
from asya.gateway.http.entry_point import HttpEntryPoint, routes_of
from asya.gateway.http.router import HttpRoute, Request, Response, TextBody, required_identity
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.gateway.streams import sse, stream_tokens
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.new_events import StreamEvent, has_final
from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.exact_json import encode_json
from asya.protocol.times import format_time
from asya.senders.aws.token_keys import TokenKeyError, TokenKeys, build_token_keys
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class StreamFormat:
    """Encodes stream events.

    Attributes:
        data: Returns the data of an event.
        has_partials: Whether the format has partials.
    """

    data: Callable[[StreamEvent], object]
    has_partials: bool = True

    def encode(self, event: StreamEvent) -> str:
        """Return an event as text."""
        return sse.event(event.type, event.id, encode_json(self.data(event)))


def _legacy(view: Callable[[TaskView], object]) -> StreamFormat:
    def data(event: StreamEvent) -> object:
        return view(event.task) if event.task else None

    return StreamFormat(data, has_partials=False)


CURRENT = StreamFormat(lambda event: event.data)
LEGACY_ENVELOPES = _legacy(legacy_envelope)
LEGACY_JOBS = _legacy(legacy_job)


RETRY_MILLISECONDS = 300
"""Reconnection time of clients; a short one shows events within a second across buffered responses."""

MAX_RESPONSE_BYTES = 2 * 1024 * 1024
"""Approximate size limit of a buffered response; Lambda's limit is 6 MB."""

_ANY_ORIGIN = {"access-control-allow-origin": "*"}
"""A page of any origin may read a stream that its token opens."""


class StreamToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token for the stream of one task.

    Attributes:
        url: The URL of the stream with the token, for EventSource.
    """

    token: str
    expires_at: str
    url: str


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """An authorized request to follow a task from a cursor on.

    Attributes:
        cursor: The events that the client has; None if its cursor is unreadable.
        ends_at: When the right to follow the task ends; None if it has no end.
    """

    task_id: str
    cursor: StreamCursor | None
    format: StreamFormat
    ends_at: datetime | None = None

    def seconds(self, most: float, now: datetime) -> float:
        """Return the seconds for which the answer may go on, `most` at most."""
        return most if self.ends_at is None else max(0.0, min(most, (self.ends_at - now).total_seconds()))


@dataclass(frozen=True, slots=True)
class StreamRoutes:
    """Serves streams and stream tokens.

    Attributes:
        stream_url: The base URL of streams that a token opens; None for the URL of the request.
        is_continuous: Whether a stream is answered with a `StreamRequest`; else with its next new events.
    """

    namespace: str
    tasks: Tasks
    poller: EventPoller
    access: AccessRules
    keys: TokenKeys
    stream_url: str | None = None
    is_continuous: bool = False

    def signed(self, request: Request, now: datetime) -> Response:
        """Stream a task to a caller who may see it."""
        return self._visible(request, CURRENT, now)

    def with_token(self, request: Request, now: datetime) -> Response:
        """Stream a task to the holder of a token."""
        token, task_id = request.query.get("token", ""), request.parameters["id"]
        expires_at = stream_tokens.read_expiry(token, now)
        stream_tokens.verify(self._key(expires_at), token, task_id, expires_at)
        task = self.tasks.read(task_id, now)
        if task is None:
            raise unknown_task(task_id)
        return self._stream(request, task, CURRENT, now, _ANY_ORIGIN, ends_at=expires_at)

    def legacy_envelope(self, request: Request, now: datetime) -> Response:
        """Stream a task in the form of `/envelopes`."""
        return self._visible(request, LEGACY_ENVELOPES, now)

    def legacy_job(self, request: Request, now: datetime) -> Response:
        """Stream a task in the form of `/jobs`."""
        return self._visible(request, LEGACY_JOBS, now)

    def create_token(self, request: Request, now: datetime) -> Response:
        """Answer 201 with a token for the stream of a task that the caller may see."""
        task_id = request.parameters["id"]
        self._visible_task(request, now)
        expires_at = stream_tokens.expiry(now)
        token = stream_tokens.sign(self._key(expires_at), task_id, expires_at)
        base = self.stream_url or request.base_url
        url = f"{base}/api/v1/mesh/{quote(task_id, safe='')}/stream?token={token}"
        return Response(201, StreamToken(token=token, expires_at=format_time(expires_at), url=url))

    def _visible(self, request: Request, stream_format: StreamFormat, now: datetime) -> Response:
        return self._stream(request, self._visible_task(request, now), stream_format, now, {})

    def _visible_task(self, request: Request, now: datetime) -> TaskView:
        caller = self.access.caller(required_identity(request))
        return visible_task(self.tasks, request.parameters["id"], caller, now)

    def _key(self, expires_at: datetime) -> bytes:
        try:
            return self.keys.get(stream_tokens.key_label(self.namespace, expires_at))
        except TokenKeyError as error:
            raise ApiError(503, "unavailable", "stream tokens are temporarily unavailable; try again") from error

    def _stream(
        self,
        request: Request,
        task: TaskView,
        stream_format: StreamFormat,
        now: datetime,
        headers: dict[str, str],
        *,
        ends_at: datetime | None = None,
    ) -> Response:
        """Answer with the events from the client's cursor on; 204 stops a client that has `final`."""
        last_id = request.headers.get("last-event-id") or request.query.get("last_event_id")
        cursor = decode(last_id) if last_id else StreamCursor()
        if cursor is not None and has_final(cursor, task):
            return Response(204, None, headers)
        stream = StreamRequest(task.id, cursor, stream_format, ends_at)
        return Response(200, stream if self.is_continuous else self._next_events(stream, now), headers)

    def _next_events(self, stream: StreamRequest, now: datetime) -> TextBody:
        seconds = stream.seconds(sse.KEEPALIVE_SECONDS, now)
        new_events = self.poller.poll(
            stream.task_id, stream.cursor, now, seconds, with_partials=stream.format.has_partials
        )
        texts = _bounded(map(stream.format.encode, new_events)) or [sse.KEEPALIVE]
        return TextBody(sse.MEDIA_TYPE, "".join((sse.retry(RETRY_MILLISECONDS), *texts)))


def _bounded(texts: Iterable[str]) -> list[str]:
    """Return the events that fit into one response; the next response has the rest."""
    batch: list[str] = []
    size = 0
    for text in texts:
        size += len(text)
        if batch and size > MAX_RESPONSE_BYTES:
            break
        batch.append(text)
    return batch


def build_streams(own: Function) -> StreamRoutes:
    """Build what answers streams and creates stream tokens."""
    settings, tasks = own.settings, StoredTasks(own).tasks
    partials = PartialStore(clients.dynamodb(), settings.table_name("tasks"), own.environment.sleep)
    return StreamRoutes(
        namespace=settings.namespace,
        tasks=tasks,
        poller=EventPoller(tasks, partials, own.environment),
        access=AccessRules(settings.table, settings.account, settings.region),
        keys=build_token_keys(settings),
        stream_url=settings.stream_url,
    )


def stream_routes(own: Function, streams: StreamRoutes | None = None) -> tuple[HttpRoute, ...]:
    """Return the routes of streams and stream tokens."""
    return routes_of(names.GATEWAY_STREAM, own.settings, [streams or build_streams(own)])


stream = HttpEntryPoint(stream_routes)
"""The Lambda handler of the stream function."""
