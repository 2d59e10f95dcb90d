"""Messages of S3 and EventBridge on `x-triggers`, and occurrences of bus events (`protocol §16.events`).

Nobody can tell by `SenderId` who sent these messages: SQS writes there an id of AWS. The policy of the queue tells
who may send.
"""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.occurrences import Occurrence, encode_payload, fill_in, part_at
from asya.capabilities.triggers.sources.new_objects import (
    Buckets,
    NewObject,
    event_object,
    notified_objects,
    object_occurrence,
)
from asya.function.hop import Arrival
from asya.function.nack import OutdatedError
from asya.protocol.envelope import NULL
from asya.protocol.mesh_table import MeshTable
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


LAST_RECEIVE = 8
"""The receive, twenty minutes after the first, at which a message of another deployment is given up."""
_TEST_EVENT = "s3:TestEvent"


class _ServiceMessage(msgspec.Struct, frozen=True):
    """`Records` is of S3, `Event` of its test, `trigger` and `event` are of a rule."""

    records: Raw | UnsetType = msgspec.field(name="Records", default=UNSET)
    test: str = msgspec.field(name="Event", default="")
    trigger: str = ""
    event: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_ServiceMessage)


def read_service_message(arrival: Arrival, mesh: MeshTable, buckets: Buckets) -> list[Occurrence] | None:
    """What a message of S3 or EventBridge tells; None for a message of another form.

    Raises:
        UnusableMessageError: it starts nothing, and never will.
        OutdatedError: it belongs to another deployment of the mesh, which the function may have in a moment.
    """
    try:
        message = _decoder.decode(arrival.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if message.test == _TEST_EVENT:
        return []
    try:
        if message.records is not UNSET:
            return [
                each for new in notified_objects(message.records) for each in _of_object(new, arrival, mesh, buckets)
            ]
        if message.event is not UNSET:
            return _of_rule(message.trigger, message.event, arrival, mesh, buckets)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise UnusableMessageError(f"the message starts nothing: {error}") from None
    return None


def _of_object(new: NewObject, arrival: Arrival, mesh: MeshTable, buckets: Buckets) -> list[Occurrence]:
    found = [object_occurrence(name, trigger, new, buckets) for name, trigger in mesh.triggers.items()]
    occurrences = [each for each in found if each is not None]
    if not occurrences and not buckets.may_notify_of(new, mesh):
        # The notifications of a bucket change before the functions do.
        raise _of_other_deployment(f"no trigger of the mesh asks for s3://{new.bucket}/{new.key}", arrival)
    return occurrences


def _of_rule(name: str, event: Raw, arrival: Arrival, mesh: MeshTable, buckets: Buckets) -> list[Occurrence]:
    trigger = mesh.triggers.get(name)
    if trigger is not None and trigger.event is not None:
        return [event_occurrence(name, trigger, event)]
    if trigger is not None and trigger.objects is not None:
        occurrence = object_occurrence(name, trigger, event_object(event), buckets)
        return [occurrence] if occurrence is not None else []
    raise _of_other_deployment(f"the mesh has no trigger {name!r} with s3 or event", arrival)


def _of_other_deployment(problem: str, arrival: Arrival) -> Exception:
    return OutdatedError(problem) if arrival.receive_count < LAST_RECEIVE else UnusableMessageError(problem)
