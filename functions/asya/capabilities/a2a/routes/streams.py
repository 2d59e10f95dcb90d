"""Streams of a task for agents (`protocol §13`, `/a2a`).

API Gateway buffers responses and times out after 30 seconds. So a stream holds the current task, then the new events of
25 seconds, and closes earlier if the task ends or pauses. A client can subscribe again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from asya.capabilities.a2a.tasks import has_stopped, partial_update, status_update, task_of, updates
from asya.capabilities.a2a.types import A2ATask, ArtifactUpdate, StatusUpdate
from asya.capabilities.a2a.versions import wrapped
from asya.function.lambdas.environment import Environment
from asya.gateway.http.router import TextBody
from asya.gateway.json_rpc import MessageId, Success
from asya.gateway.routes.tool_calls import WAIT_SECONDS
from asya.gateway.streams import sse
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.new_events import StreamEvent
from asya.tasks.stream_events import StreamPartial
from asya.tasks.view import TaskView

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
