"""What happens to a task, for other agents that look on (`protocol §13`, `message/stream`, `tasks/resubscribe`).

API Gateway waits for whole answers, 30 seconds at most. So a stream holds how the task stands, and what is new within 25 seconds or
until it ends or asks for input; then it closes, and who wants to know more subscribes again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from asya.gateway.a2a.tasks import has_stopped, message_update, status_update, task_of, updates
from asya.gateway.a2a.types import ArtifactUpdate, StatusUpdate, Task
from asya.gateway.a2a.versions import A2AVersion
from asya.gateway.http.router import TextBody
from asya.gateway.json_rpc import MessageId, Success
from asya.gateway.routes.tool_calls import WAIT_SECONDS
from asya.gateway.streams import sse
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.new_events import StreamEvent
from asya.messaging.lambdas.environment import Environment
from asya.tasks.stream_events import StreamPartial
from asya.tasks.view import TaskView

# Characters that one answer holds, or a little more; Lambda answers with up to 6 MB.
MOST = 2 * 1024 * 1024

Item = Task | StatusUpdate | ArtifactUpdate


@dataclass(frozen=True, slots=True)
class A2AStreams:
    """Makes streams."""

    poller: EventPoller
    environment: Environment

    def follow(self, task: TaskView, version: A2AVersion, message_id: MessageId, now: datetime) -> TextBody:
        """A stream that begins with a task as it stands.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        began = self.environment.monotonic()
        events: list[str] = []
        shown = None
        while sum(map(len, events)) < MOST:
            waited = self.environment.monotonic() - began
            found = self.poller.poll(task.id, shown, now + timedelta(seconds=waited), WAIT_SECONDS - waited)
            for item in found:
                task = item.task or task
                # The first of all says how it stands, whatever came before.
                told = _told(item, task, version) if shown is not None else _standing(task, version)
                events += (_event(version.streamed(each), message_id) for each in told)
                shown = item.cursor
            if not found or has_stopped(task):
                break
        return TextBody(sse.MEDIA_TYPE, "".join(events))


def _standing(task: TaskView, version: A2AVersion) -> list[Item]:
    shown = task_of(task, version)
    # Only an update says, in 0.3, that nothing follows.
    return [shown, status_update(task, version)] if has_stopped(task) else [shown]


def _told(item: StreamEvent, task: TaskView, version: A2AVersion) -> list[Item]:
    if isinstance(item.data, StreamPartial):
        return [message_update(item.data, task, version)]
    return [*updates(task, version)]


def _event(result: object, message_id: MessageId) -> str:
    return sse.message(msgspec.json.encode(Success(id=message_id, result=result)))
