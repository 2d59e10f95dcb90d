"""Publishes the event of a paused task on EventBridge's default bus, and its link on a bus of the mesh (`protocol §11`)."""

from typing import TYPE_CHECKING

import msgspec

from asya.function.nack import ServiceError
from asya.protocol import names
from asya.protocol.exact_json import encode_json
from asya.protocol.pause import PauseField, ShownValue

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

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


def link_bus(namespace: str) -> str:
    """The bus of the mesh for events with links. On the default bus everybody in the account who makes a rule would get them."""
    return names.resource_name(namespace, "links")


def source_of(namespace: str) -> str:
    """The source of a mesh's events."""
    return f"asya.{namespace}"


class PauseNotices:
    """Publishes the events of one mesh."""

    def __init__(self, events: "EventBridgeClient", namespace: str) -> None:
        self._events = events
        self._namespace = namespace

    def publish(self, notice: PauseNotice) -> None:
        """Publish one event, without its fields if they are too large; the task's record has them.

        The default bus gets it without its link. An event with a link is on the bus for links, too.

        Raises:
            NotNotifiedError: EventBridge rejected the event.
            ClientError, BotoCoreError: the call failed.
        """
        public = msgspec.structs.replace(notice, callback=None)
        limit = _DETAIL_LIMIT if notice.callback is None else _DETAIL_LIMIT // 2
        entries: list[PutEventsRequestEntryTypeDef] = [self._entry(public, limit)]
        if notice.callback is not None:
            entries.append({**self._entry(notice, limit), "EventBusName": link_bus(self._namespace)})
        answer = self._events.put_events(Entries=entries)
        if answer["FailedEntryCount"]:
            entry = next(each for each in answer["Entries"] if "ErrorCode" in each)
            raise NotNotifiedError(
                f"EventBridge rejected the event that task {notice.id} is paused: "
                f"{entry.get('ErrorCode')}: {entry.get('ErrorMessage')}"
            )

    def _entry(self, notice: PauseNotice, limit: int) -> "PutEventsRequestEntryTypeDef":
        detail = encode_json(notice)
        if len(detail) > limit:
            detail = encode_json(msgspec.structs.replace(notice, fields=()))
        return {"Source": source_of(self._namespace), "DetailType": DETAIL_TYPE, "Detail": detail.decode()}
