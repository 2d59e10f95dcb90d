"""The messages of S3 and EventBridge on the queue `x-triggers` (`protocol §16.objects`, `§16.events`).

Nobody can tell by `SenderId` who sent them: SQS writes there an id of AWS. The policy of the queue tells who may send.
"""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.occurrences import Occurrence
from asya.capabilities.triggers.sources.bus_events import event_occurrence
from asya.capabilities.triggers.sources.new_objects import (
    Buckets,
    NewObject,
    event_object,
    notified_objects,
    object_occurrence,
)
from asya.function.hop import Arrival
from asya.function.nack import OutdatedError
from asya.protocol.mesh_table import MeshTable

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
