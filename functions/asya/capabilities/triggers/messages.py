"""The messages of the queue `x-triggers` (`protocol §16.messages`)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from asya.capabilities.triggers.occurrences import Occurrence, slot_occurrence
from asya.capabilities.triggers.slots import is_slot
from asya.capabilities.triggers.webhooks.deliveries import UnusableDeliveryError, WebhookMessage, webhook_occurrence
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Schedule, Trigger


class UnusableMessageError(Exception):
    """A message that starts nothing, and never will."""


class OtherDeploymentError(UnusableMessageError):
    """A message that fits no trigger of this version of the mesh; a deployment may be under way."""


class SlotMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A slot of a schedule that is due.

    Attributes:
        then: later slots that are due too, in order (`protocol §16.overlap.slots`).
    """

    trigger: str
    slot: str
    then: tuple[str, ...] = ()


_decoder = msgspec.json.Decoder(SlotMessage)
_webhook_decoder = msgspec.json.Decoder(WebhookMessage)
_kind_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def slot_message(trigger: str, slot: datetime, then: Sequence[datetime] = ()) -> bytes:
    """The message that starts the task of a slot, and those of later ones in order."""
    message = SlotMessage(trigger=trigger, slot=format_time(slot), then=tuple(map(format_time, then)))
    return msgspec.json.encode(message)


def read_webhook_message(body: bytes) -> WebhookMessage | None:
    """The message of a webhook; None for any other."""
    try:
        return _webhook_decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def read_occurrences(body: bytes, mesh: MeshTable) -> list[Occurrence]:
    """What the message of a source tells.

    Raises:
        UnusableMessageError: the message has no known form.
        OtherDeploymentError: it fits no trigger of the mesh.
    """
    try:
        if "webhook" in _kind_decoder.decode(body):
            return [_webhook(_webhook_decoder.decode(body), mesh)]
        message = _decoder.decode(body)
        slots = [parse_time(slot) for slot in (message.slot, *message.then)]
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise UnusableMessageError(f"the message is of no source of triggers: {error}") from None
    trigger, schedule = scheduled(message.trigger, mesh)
    for slot in slots:
        if not is_slot(schedule, slot):
            raise OtherDeploymentError(f"{format_time(slot)} is no slot of {schedule.cron!r} in {schedule.timezone}")
    return [slot_occurrence(message.trigger, trigger, schedule, slot) for slot in slots]


def _webhook(message: WebhookMessage, mesh: MeshTable) -> Occurrence:
    trigger = known(message.trigger, mesh)
    if trigger.webhook is None:
        raise OtherDeploymentError(f"the trigger {message.trigger!r} has no webhook")
    try:
        return webhook_occurrence(message.trigger, trigger, message.webhook)
    except UnusableDeliveryError as error:
        raise UnusableMessageError(str(error)) from None


def scheduled(name: str, mesh: MeshTable) -> tuple[Trigger, Schedule]:
    """The trigger of a name, and its schedule.

    Raises:
        OtherDeploymentError: the mesh has no such trigger, or it has no schedule.
    """
    trigger = known(name, mesh)
    if trigger.schedule is None:
        raise OtherDeploymentError(f"the trigger {name!r} has no schedule")
    return trigger, trigger.schedule


def known(name: str, mesh: MeshTable) -> Trigger:
    """The trigger of a name.

    Raises:
        OtherDeploymentError: the mesh has no such trigger.
    """
    trigger = mesh.triggers.get(name)
    if trigger is None:
        raise OtherDeploymentError(f"the mesh has no trigger {name!r}")
    return trigger
