"""Events of an EventBridge bus, and the occurrences of triggers (`protocol §16.events`)."""

import msgspec
from msgspec import Raw

from asya.capabilities.triggers.occurrences import Occurrence, encode_payload
from asya.capabilities.triggers.pointers import part_at
from asya.capabilities.triggers.templates import fill_in
from asya.protocol.envelope import NULL
from asya.protocol.strict_json import decode_exact
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Trigger

CAUSE = "x-asya-task"
"""The field of `detail` with the id of the task that has put an event."""


class BusEvent(msgspec.Struct, frozen=True):
    """The envelope of an event."""

    id: str
    source: str
    type: str = msgspec.field(name="detail-type")
    time: str
    account: str = ""
    detail: Raw = NULL


class _Cause(msgspec.Struct, frozen=True):
    task: str | None = msgspec.field(name=CAUSE, default=None)


def event_values(event: BusEvent) -> dict[str, str]:
    """The values for the payload of a trigger.

    Raises:
        ValueError: the time of the event is none.
    """
    at = parse_time(event.time)
    return {
        "id": event.id,
        "source": event.source,
        "detail-type": event.type,
        "account": event.account,
        "date": at.strftime("%Y-%m-%d"),
        "time": at.strftime("%H:%M"),
        "occurred_at": format_time(at),
    }


def event_occurrence(name: str, trigger: Trigger, text: Raw) -> Occurrence:
    """The occurrence of an event.

    Raises:
        msgspec.MsgspecError, ValueError: it is no event, or it has not the part that becomes the payload.
    """
    event = msgspec.json.decode(text, type=BusEvent)
    if not event.id:
        raise ValueError("the event has no id")
    values = event_values(event)
    payload = fill_in(trigger.payload, values) if trigger.payload is not None else part_of(text, trigger.input)
    started_by = StartedBy(kind="trigger", name=name)
    return Occurrence(name, f"event {event.id}", encode_payload(payload), started_by, _cause(event))


def _cause(event: BusEvent) -> str | None:
    """The task that has put an event, as it says itself."""
    try:
        return msgspec.json.decode(event.detail, type=_Cause).task
    except msgspec.MsgspecError:
        return None


def part_of(text: Raw | bytes, pointer: str) -> object:
    """The part of a JSON document that a pointer names.

    Raises:
        ValueError: the text is no JSON, or it has no such part.
    """
    return part_at(decode_exact(text), pointer)
