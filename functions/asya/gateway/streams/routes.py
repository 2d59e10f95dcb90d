"""The gateway for those who look on: tasks followed by Server-Sent Events (`protocol §13`, `§14`).

`GET /api/v1/mesh/{id}/events` is signed for. What can sign nothing, as a browser's EventSource, takes `GET
/api/v1/mesh/{id}/stream?token=…`, which is open and looks for a token of `POST …/stream-token`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import msgspec

from asya.gateway.access import AccessRules
from asya.gateway.http.router import HttpRoute, Request, Response, TextBody, required_identity
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.gateway.streams import sse, tokens
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.formats import CURRENT, ENVELOPES, JOBS, StreamFormat
from asya.gateway.streams.stream_cursor import FINAL, StreamCursor, decode
from asya.gateway.streams.token_keys import TokenKeyError, TokenKeys
from asya.protocol.api_errors import ApiError
from asya.protocol.events import TERMINAL_STATUSES
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView

WAIT_SECONDS = 25.0
"""API Gateway gives up after 30."""

RETRY_MILLISECONDS = 300
"""An answer ends with what is new; what comes next is to be seen within a second all the same."""

MAX_RESPONSE_BYTES = 2 * 1024 * 1024
"""Bytes of events, about, that one answer has; Lambda's end is 6 MB."""

# Any page may read it: who has the token has been given it.
_FOR_ANY_PAGE = {"access-control-allow-origin": "*"}


class StreamToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token for one task's stream.

    Attributes:
        url: the stream's address with the token in it, for EventSource.
    """

    token: str
    expires_at: str
    url: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Somebody who may follow a task, and from where on."""

    task_id: str
    shown: StreamCursor | None
    words: StreamFormat


@dataclass(frozen=True, slots=True)
class StreamRoutes:
    """What the calls need, and the calls.

    Attributes:
        stream_url: where streams are that a token opens, if that is not where the request came in.
    """

    namespace: str
    tasks: Tasks
    poller: EventPoller
    access: AccessRules
    keys: TokenKeys
    warn: Callable[[str], None]
    stream_url: str | None = None

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment; streams are answered with what is new, as soon as anything is."""

        def buffered(watch: Callable[[Request], Response]) -> Callable[[Request], Response]:
            return lambda request: self._buffered(watch(request), now)

        return (
            *(HttpRoute(each.method, each.template, buffered(each.operation)) for each in self.watches(now)),
            HttpRoute("POST", "/api/v1/mesh/{id}/stream-token", lambda request: self.token(request, now)),
        )

    def watches(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The streams: who may look on, and from where, is the content of their answer; 204 if there is nothing more."""
        return (
            HttpRoute("GET", "/api/v1/mesh/{id}/events", lambda request: self._signed(request, CURRENT, now)),
            HttpRoute("GET", "/api/v1/mesh/{id}/stream", lambda request: self._with_token(request, now)),
            HttpRoute("GET", "/envelopes/{id}/stream", lambda request: self._signed(request, ENVELOPES, now)),
            HttpRoute("GET", "/jobs/{id}/stream", lambda request: self._signed(request, JOBS, now)),
        )

    def token(self, request: Request, now: datetime) -> Response:
        """201: a token for the stream of a task that the caller may see."""
        task_id = request.parameters["id"]
        self._visible(request, now)
        ends_at = tokens.expiry(now)
        token = tokens.sign(self._key(ends_at), task_id, ends_at)
        base = self.stream_url or request.base_url
        url = f"{base}/api/v1/mesh/{quote(task_id, safe='')}/stream?token={token}"
        return Response(201, StreamToken(token=token, expires_at=format_time(ends_at), url=url))

    def _signed(self, request: Request, words: StreamFormat, now: datetime) -> Response:
        return _watch(request, self._visible(request, now), words, {})

    def _with_token(self, request: Request, now: datetime) -> Response:
        token, task_id = request.query.get("token", ""), request.parameters["id"]
        ends_at = tokens.read_expiry(token, now)
        tokens.verify(self._key(ends_at), token, task_id, ends_at)
        task = self.tasks.read(task_id, now)
        if task is None:
            raise unknown_task(task_id)
        return _watch(request, task, CURRENT, _FOR_ANY_PAGE)

    def _visible(self, request: Request, now: datetime) -> TaskView:
        caller = self.access.caller(required_identity(request))
        return visible_task(self.tasks, request.parameters["id"], caller, now)

    def _key(self, ends_at: datetime) -> bytes:
        try:
            return self.keys.of(tokens.key_label(self.namespace, ends_at))
        except TokenKeyError as error:
            self.warn(str(error))
            raise ApiError(503, "unavailable", "tokens cannot be checked just now; try again") from None

    def _buffered(self, response: Response, now: datetime) -> Response:
        watch = response.content
        if not isinstance(watch, Watch):
            return response
        items = self.poller.poll(watch.task_id, watch.shown, now, WAIT_SECONDS, with_partials=watch.words.has_partials)
        events = _bounded(map(watch.words.event, items)) or [sse.KEEPALIVE]
        body = "".join((sse.retry(RETRY_MILLISECONDS), *events))
        return Response(200, TextBody(sse.MEDIA_TYPE, body), response.headers)


def _watch(request: Request, task: TaskView, words: StreamFormat, headers: dict[str, str]) -> Response:
    """From what the client says it has seen. To one that has seen the end, nothing: that keeps it from coming back."""
    last = request.headers.get("last-event-id") or request.query.get("last_event_id")
    shown = decode(last) if last else StreamCursor()
    has_seen_it_all = shown is not None and (shown.state, shown.generation) == (FINAL, task.generation)
    if has_seen_it_all and task.status in TERMINAL_STATUSES:
        return Response(204, None, headers)
    return Response(200, Watch(task.id, shown, words), headers)


def _bounded(events: Iterable[str]) -> list[str]:
    """As many as one answer may have; the rest is new again the next time."""
    some: list[str] = []
    size = 0
    for event in events:
        size += len(event)
        if some and size > MAX_RESPONSE_BYTES:
            break
        some.append(event)
    return some
