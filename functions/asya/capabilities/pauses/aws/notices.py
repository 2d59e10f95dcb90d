"""Publishes the event of a paused task on EventBridge's default bus (`protocol §11`)."""

from typing import TYPE_CHECKING

import msgspec

from asya.function.nack import ServiceError
from asya.protocol.exact_json import encode_json
from asya.protocol.pause import PauseField, ShownValue

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

DETAIL_TYPE = "Task Paused"
# EventBridge takes 256 KB in one call; the rest is for the other fields of the entry.
_DETAIL_LIMIT = 200 * 1024


class NotNotifiedError(ServiceError):
    """EventBridge rejected the event."""


class PauseNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The detail of the event. An e-mail shows it as it is, so the fields for the reader come first.

    Attributes:
        message: one sentence on the pause.
        resume: the command that resumes the task.
        callback: the link that answers the pause; its holder may answer. None without one.
        shown: the values of the payload that the actor names.
    """

    message: str
    resume: str
    callback: str | None = None
    shown: tuple[ShownValue, ...] = ()
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
    """The source of a mesh's events."""
    return f"asya.{namespace}"


class PauseNotices:
    """Publishes the events of one mesh."""

    def __init__(self, events: "EventBridgeClient", namespace: str) -> None:
        self._events = events
        self._source = source_of(namespace)

    def publish(self, notice: PauseNotice) -> None:
        """Publish one event, without its fields if they are too large; the task's record has them.

        Raises:
            NotNotifiedError: EventBridge rejected the event.
            ClientError, BotoCoreError: the call failed.
        """
        detail = encode_json(notice)
        if len(detail) > _DETAIL_LIMIT:
            detail = encode_json(msgspec.structs.replace(notice, fields=()))
        answer = self._events.put_events(
            Entries=[{"Source": self._source, "DetailType": DETAIL_TYPE, "Detail": detail.decode()}]
        )
        if answer["FailedEntryCount"]:
            entry = answer["Entries"][0]
            raise NotNotifiedError(
                f"EventBridge rejected the event that task {notice.id} is paused: "
                f"{entry.get('ErrorCode')}: {entry.get('ErrorMessage')}"
            )
