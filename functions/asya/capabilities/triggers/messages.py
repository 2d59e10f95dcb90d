"""The messages of the queue `x-triggers` (`protocol §16.messages`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Raw

from asya.capabilities.triggers.lanes import LaneKey, Start
from asya.capabilities.triggers.occurrences import Occurrence, slot_occurrence
from asya.capabilities.triggers.slots import is_slot
from asya.capabilities.triggers.statements import FORMS
from asya.capabilities.triggers.webhooks import UnusableDeliveryError, WebhookMessage, webhook_occurrence
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Schedule, Trigger
from asya.senders.statements import problem


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


_slot_decoder = msgspec.json.Decoder(SlotMessage)
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
        message = _slot_decoder.decode(body)
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


class LaneCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something may be due in a lane.

    Attributes:
        closes: the id of the task that the open window starts, if the message was sent to close it.
    """

    lane: str
    trigger: str
    closes: str | None = None

    @property
    def key(self) -> LaneKey:
        """The lane."""
        return LaneKey(self.trigger, self.lane)


class StartAgain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A start of a lane that has failed: a dead letter, which starts again if it is redriven."""

    start: Start
    lane: str
    trigger: str

    @property
    def key(self) -> LaneKey:
        """The lane."""
        return LaneKey(self.trigger, self.lane)


_check_decoder = msgspec.json.Decoder(LaneCheck)
_again_decoder = msgspec.json.Decoder(StartAgain)


def encode_check(key: LaneKey, closes: str | None = None) -> bytes:
    """The message that has a lane looked at."""
    return msgspec.json.encode(LaneCheck(lane=key.digest, trigger=key.trigger, closes=closes))


def encode_again(key: LaneKey, start: Start) -> bytes:
    """The dead letter of a start that has failed."""
    return msgspec.json.encode(StartAgain(start=start, lane=key.digest, trigger=key.trigger))


def read_lane_message(body: bytes) -> LaneCheck | StartAgain | None:
    """Read a message about a lane; None if it is none."""
    for decoder in (_check_decoder, _again_decoder):
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
    return None


class EndNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task has ended, or has paused. The record of the task is the truth: a notice may come twice, late or not at all.

    Attributes:
        ended: the id of the task.
        kind, name: what started the task, as in its record.
    """

    ended: str
    kind: Literal["trigger", "backfill"]
    name: str


_end_decoder = msgspec.json.Decoder(EndNotice)


def end_notice(record: TaskRecord, triggers: Mapping[str, Trigger]) -> EndNotice | None:
    """The notice of a task that has ended; None if nothing waits for that. A paused task gives back its place in a backfill."""
    started_by = record.started_by
    if started_by is None or started_by.name is None:
        return None
    if started_by.kind == "backfill" and record.is_at_rest:
        return EndNotice(ended=record.id, kind="backfill", name=started_by.name)
    if not record.is_terminal:
        return None
    trigger = triggers.get(started_by.name)
    if started_by.kind != "trigger" or trigger is None or trigger.overlap == "allow":
        return None
    return EndNotice(ended=record.id, kind="trigger", name=started_by.name)


def encode_end_notice(notice: EndNotice) -> bytes:
    """The message of a notice."""
    return msgspec.json.encode(notice)


def read_end_notice(body: bytes) -> EndNotice | None:
    """Read the message of a notice; None if it is none."""
    try:
        return _end_decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


_form_decoder = msgspec.json.Decoder(dict[str, Raw])


def check_sender(mesh: MeshTable, function: str | None, body: bytes) -> None:
    """Check that a sender may send a message; one without a known form is left to the readers.

    Args:
        function: the function whose role has sent the message; None for a sender outside.
        body: the message.

    Raises:
        UnusableMessageError: others send such messages.
    """
    try:
        forms = FORMS.keys() & _form_decoder.decode(body).keys()
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return
    for form in sorted(forms):
        refused = problem(FORMS[form], mesh, function, at=names.TRIGGERS)
        if refused is not None:
            raise UnusableMessageError(refused)
