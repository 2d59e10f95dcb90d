"""Events of an EventBridge bus, and the occurrences of triggers (`protocol §16.events`)."""

import msgspec

from asya.protocol.strict_json import decode_value
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Trigger
from asya.triggers.occurrences import Occurrence, encode_payload
from asya.triggers.pointers import part_at
from asya.triggers.templates import fill_in


class BusEvent(msgspec.Struct, frozen=True):
    """The envelope of an event."""

    id: str
    source: str
    type: str = msgspec.field(name="detail-type")
    time: str
    account: str = ""


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


def event_occurrence(name: str, trigger: Trigger, text: msgspec.Raw) -> Occurrence:
    """The occurrence of an event.

    Raises:
        msgspec.MsgspecError, ValueError: it is no event, or it has not the part that becomes the payload.
    """
    event = msgspec.json.decode(text, type=BusEvent)
    if not event.id:
        raise ValueError("the event has no id")
    values = event_values(event)
    payload = fill_in(trigger.payload, values) if trigger.payload is not None else part_of(text, trigger.input)
    return Occurrence(name, f"event {event.id}", encode_payload(payload), StartedBy(kind="trigger", name=name))


def part_of(text: msgspec.Raw | bytes, pointer: str) -> object:
    """The part of a JSON document that a pointer names.

    Raises:
        ValueError: the text is no JSON, or it has no such part.
    """
    return part_at(decode_value(text), pointer)
