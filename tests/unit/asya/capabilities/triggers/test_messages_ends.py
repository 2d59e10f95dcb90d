"""Notices of ended tasks: of which tasks, and that no other message is one."""

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.messages import EndNotice, encode_end_notice, end_notice, read_end_notice
from asya.protocol.states import TaskStatus
from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.triggers import Trigger

AT = "2026-11-25T02:00:00.000000Z"
RECORD = TaskRecord(
    id="t", status="succeeded", created_at=AT, updated_at=AT, started_by=StartedBy(kind="trigger", name="nightly")
)
TRIGGERS = {"nightly": Trigger(route=("greet",), overlap="skip"), "landed": Trigger(route=("greet",))}


def by(kind: str, name: str | None = None) -> TaskRecord:
    """The record of a task that something else has started."""
    return replace(RECORD, started_by=StartedBy(kind=kind, name=name))  # type: ignore[arg-type]


@pytest.mark.rule("16.ends")
@pytest.mark.parametrize("status", ["succeeded", "failed", "canceled"])
def test_16_triggers_that_wait_and_backfills_learn_of_ends(status: TaskStatus) -> None:
    """A trigger that allows overlap waits for no end."""
    notice = EndNotice(ended="t", kind="trigger", name="nightly")
    assert end_notice(replace(RECORD, status=status), TRIGGERS) == notice
    assert end_notice(replace(by("backfill", "b"), status=status), TRIGGERS) == EndNotice(
        ended="t", kind="backfill", name="b"
    )
    assert read_end_notice(encode_end_notice(notice)) == notice


@pytest.mark.rule("16.ends")
@pytest.mark.parametrize(
    "record",
    [
        replace(RECORD, status="running"),
        replace(RECORD, started_by=None),
        by("trigger", "landed"),
        by("trigger", "unknown"),
        by("trigger"),
        by("replay", "r"),
        by("caller"),
    ],
)
def test_16_other_tasks_have_no_notice(record: TaskRecord) -> None:
    """No queue gets messages that nobody waits for."""
    assert end_notice(record, TRIGGERS) is None


@pytest.mark.rule("16.ends")
@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"{}", b'{"trigger": "nightly", "slot": "x"}', b"[" * 10_000])
def test_16_no_other_message_is_a_notice(body: bytes) -> None:
    """The function reads it as an occurrence then."""
    assert read_end_notice(body) is None


@pytest.mark.rule("16.ends", "16.backfill.paused")
def test_a_pause_is_told_to_its_backfill_alone() -> None:
    assert end_notice(replace(by("backfill", "b"), status="paused"), TRIGGERS) == EndNotice(
        ended="t", kind="backfill", name="b"
    )
    assert end_notice(replace(by("trigger", "nightly"), status="paused"), TRIGGERS) is None
    assert end_notice(replace(by("backfill", "b"), status="running"), TRIGGERS) is None
