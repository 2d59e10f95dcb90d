"""Which changes of a task cause notifications, and which addresses are public (`protocol §13`, `/a2a`)."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.capabilities.a2a.push import is_public, is_status_change
from asya.protocol.pause import TaskPause
from asya.protocol.task import TaskRecord

Json = dict[str, Any]
RECORD = TaskRecord(id="t", status="running", created_at="2026-11-20T09:00:00Z", updated_at="2026-11-20T09:00:00Z")
WATCHED = changed(RECORD, is_watched=True)
PAUSE = TaskPause(prompt="?", fields=(), since="2026-11-20T09:00:00Z")


@pytest.mark.rule("13.a2a.push")
@pytest.mark.parametrize(
    ("before", "after", "is_notified"),
    [
        (None, RECORD, False),
        (RECORD, changed(RECORD, status="succeeded"), False),
        (None, changed(WATCHED, status="pending"), False),
        (None, WATCHED, True),
        (RECORD, WATCHED, True),
        (WATCHED, changed(WATCHED, result_uri="s3://b/k"), False),
        (changed(WATCHED, status="pending"), WATCHED, True),
        (WATCHED, changed(WATCHED, status="succeeded"), True),
        (WATCHED, changed(WATCHED, status="paused", pause=PAUSE), True),
        (changed(WATCHED, status="paused", pause=PAUSE), WATCHED, True),
        (changed(WATCHED, status="failed"), changed(WATCHED, status="failed", generation=1), True),
    ],
)
def test_changes_of_status_cause_notifications(before: TaskRecord | None, after: TaskRecord, is_notified: bool) -> None:
    assert is_status_change(before, after) is is_notified


@pytest.mark.rule("13.a2a.push.address")
@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("203.0.114.7", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("::1", False),
        ("fd00:ec2::254", False),
        ("fe80::1%eth0", False),
        ("::ffff:127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("localhost", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public
