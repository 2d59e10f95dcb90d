"""Says that a task of a trigger or a backfill has ended, or that one of a backfill has paused (`protocol §16.ends`)."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from asya.protocol.task import TaskRecord
from asya.protocol.triggers import Trigger


class EndNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task has ended, or has paused. The record of the task is the truth: a notice may come twice, late or not at all.

    Attributes:
        ended: the id of the task.
        kind, name: what started the task, as in its record.
    """

    ended: str
    kind: Literal["trigger", "backfill"]
    name: str


_decoder = msgspec.json.Decoder(EndNotice)


def end_notice(record: TaskRecord, triggers: Mapping[str, Trigger]) -> EndNotice | None:
    """The notice of a task that has ended; None if nothing waits for that. A paused task gives back its place in a backfill."""
    started_by = record.started_by
    if started_by is None or started_by.name is None:
        return None
    if started_by.kind == "backfill" and (record.is_terminal or record.status == "paused"):
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
        return _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
