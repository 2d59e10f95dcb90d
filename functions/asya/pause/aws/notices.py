"""Telling people that a task waits for them: an event on EventBridge's default bus, which rules lead anywhere (`protocol §11`)."""

from typing import TYPE_CHECKING

import msgspec

from asya.protocol.pause import PauseField

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

DETAIL_TYPE = "Task Paused"
# EventBridge takes 256 KB in one call.
_DETAIL_LIMIT = 200 * 1024


class NotNotifiedError(RuntimeError):
    """EventBridge did not take the event."""


class PauseNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The event's detail, as it also comes by e-mail: first what a person wants to know.

    Attributes:
        message: what happened, in a sentence.
        resume: the command that ends the pause.
    """

    message: str
    resume: str
    namespace: str
    id: str
    actor: str
    prompt: str
    fields: tuple[PauseField, ...]
    paused_at: str
    generation: int
    position: int
    root_id: str | None = None


def source_of(namespace: str) -> str:
    """The events' source."""
    return f"asya.{namespace}"


class PauseNotices:
    """Publishes the events of one mesh."""

    def __init__(self, events: "EventBridgeClient", namespace: str) -> None:
        self._events = events
        self._source = source_of(namespace)

    def publish(self, notice: PauseNotice) -> None:
        """Publish one event. One with more fields than an event may tell of goes without: the task's record has them.

        Raises:
            NotNotifiedError: if EventBridge refused the event.
            ClientError, BotoCoreError: if it could not be asked.
        """
        detail = msgspec.json.encode(notice)
        if len(detail) > _DETAIL_LIMIT:
            detail = msgspec.json.encode(msgspec.structs.replace(notice, fields=()))
        answer = self._events.put_events(
            Entries=[{"Source": self._source, "DetailType": DETAIL_TYPE, "Detail": detail.decode()}]
        )
        if answer["FailedEntryCount"]:
            refused = answer["Entries"][0]
            raise NotNotifiedError(
                f"EventBridge refused the event that task {notice.id} is paused: "
                f"{refused.get('ErrorCode')}: {refused.get('ErrorMessage')}"
            )
