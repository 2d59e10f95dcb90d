"""Lists and streams of tasks for agents (`tasks/list`, `message/stream`, `tasks/resubscribe`; `protocol §13`).

API Gateway buffers responses and times out after 30 seconds. So a stream holds the current task, then the new events of
25 seconds, and closes earlier if the task ends or pauses. A client can subscribe again.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from asya.capabilities.a2a.requests import A2AError, ListTasksParams
from asya.capabilities.a2a.tasks import context_of, has_stopped, partial_update, status_update, task_of, updates
from asya.capabilities.a2a.types import A2ATask, ArtifactUpdate, StatusUpdate, TaskPage
from asya.capabilities.a2a.versions import STATES, status_of_state, wrapped
from asya.function.lambdas.environment import Environment
from asya.gateway.access import Caller
from asya.gateway.http.router import TextBody
from asya.gateway.json_rpc import INVALID_PARAMS, MessageId, Success
from asya.gateway.routes.tools import WAIT_SECONDS
from asya.gateway.streams import sse
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.new_events import StreamEvent
from asya.protocol.times import parse_time
from asya.tasks.aws.lists import TaskLists
from asya.tasks.listing import LARGEST_LIMIT, ListQuery, read_list_query
from asya.tasks.stream_events import StreamPartial
from asya.tasks.view import TaskView

DEFAULT_PAGE = 50
MAX_PAGE_WITH_ARTIFACTS = 50
"""A result has up to 64 KiB, and a response of Lambda up to 6 MB."""
_UNSPECIFIED = "TASK_STATE_UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class A2ALists:
    """Lists tasks page by page."""

    lists: TaskLists

    def page(self, params: ListTasksParams, caller: Caller, now: datetime) -> TaskPage:
        """Return a page of the caller's tasks, newest first; a short page may have a next one.

        Raises:
            A2AError, ApiError: If the parameters are invalid.
            TaskStoreError: If the table cannot be read.
        """
        after = _time(params.status_timestamp_after)
        query = _query(params)
        page = self.lists.page(query, caller.owner_filter, now)
        tasks = [task for task in page.tasks if _matches(task, params.context_id, after)]
        if params.include_artifacts:
            tasks = [self.lists.tasks.read(task.id, now) or task for task in tasks]
        is_all = page.next is None and not query.after
        return TaskPage(
            tasks=tuple(task_of(task) for task in tasks),
            next_page_token=query.cursor(page.next) if page.next else "",
            page_size=query.limit,
            total_size=len(tasks) if is_all else -1,
        )


def _query(params: ListTasksParams) -> ListQuery:
    size = DEFAULT_PAGE if params.page_size is None or params.page_size == 0 else params.page_size
    largest = MAX_PAGE_WITH_ARTIFACTS if params.include_artifacts else LARGEST_LIMIT
    if not 1 <= size <= largest:
        raise A2AError(INVALID_PARAMS, f"pageSize must be a number from 1 to {largest}", "pageSize")
    query = {"limit": str(size)}
    if params.status and params.status != _UNSPECIFIED:
        status = status_of_state(params.status)
        if status is None:
            known = ", ".join(STATES.values())
            raise A2AError(INVALID_PARAMS, f"no task has the status {params.status!r}; use one of {known}", "status")
        query["status"] = status
    if params.page_token:
        query["cursor"] = params.page_token
    filters = f"{params.context_id or ''}\n{params.status_timestamp_after or ''}"
    return read_list_query(query, f"a2a {hashlib.sha256(filters.encode()).hexdigest()}", (str, str))


def _matches(task: TaskView, context_id: str | None, after: datetime | None) -> bool:
    if context_id and context_of(task) != context_id:
        return False
    return after is None or parse_time(task.updated_at) > after


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise A2AError(INVALID_PARAMS, str(error), "statusTimestampAfter") from None


MAX_RESPONSE_CHARACTERS = 2 * 1024 * 1024
"""Characters of a response, which the last events may exceed; Lambda's limit is 6 MB."""

Item = A2ATask | StatusUpdate | ArtifactUpdate


@dataclass(frozen=True, slots=True)
class A2AStreams:
    """Answers streaming calls."""

    poller: EventPoller
    environment: Environment

    def stream(self, task: TaskView, message_id: MessageId, now: datetime) -> TextBody:
        """Return a stream that begins with the current task.

        Raises:
            TaskStoreError: If the table cannot be read.
        """
        started = self.environment.monotonic()
        texts: list[str] = []
        cursor = None
        while sum(map(len, texts)) < MAX_RESPONSE_CHARACTERS:
            elapsed = self.environment.monotonic() - started
            events = self.poller.poll(task.id, cursor, now + timedelta(seconds=elapsed), WAIT_SECONDS - elapsed)
            for event in events:
                task = event.task or task
                items = _items(event, task) if cursor is not None else _first_items(task)
                texts += (_event_text(wrapped(item), message_id) for item in items)
                cursor = event.cursor
            if not events or has_stopped(task):
                break
        return TextBody(sse.MEDIA_TYPE, "".join(texts))


def _first_items(task: TaskView) -> list[Item]:
    first = task_of(task)
    return [first, status_update(task)] if has_stopped(task) else [first]


def _items(event: StreamEvent, task: TaskView) -> list[Item]:
    if isinstance(event.data, StreamPartial):
        return [partial_update(event.data, task)]
    return [*updates(task)]


def _event_text(result: object, message_id: MessageId) -> str:
    return sse.message(msgspec.json.encode(Success(id=message_id, result=result)))
