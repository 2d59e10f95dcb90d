"""What became of failed tasks, by generated histories of replays and dismissals (`protocol §13.resolution`)."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.protocol.ids import occurrence_id
from asya.protocol.task import Dismissal, ReplayLink, Resolution, StartedBy, TaskRecord
from asya.protocol.times import format_time
from asya.tasks.resolution import Settled, is_open, related, settled
from tests.doubles.tasks import at

NOW = at(1_000)
ENDS = ("failed", "failed", "succeeded", "canceled", "running", "pending")


def record(task_id: str, status: Any = "failed", seconds: float = 0, **more: Any) -> TaskRecord:
    """A task that ended at a time after the start."""
    moment = format_time(at(seconds))
    return TaskRecord(id=task_id, status=status, created_at=moment, updated_at=moment, **more)


@dataclass
class Table:
    """The records of one mesh."""

    records: dict[str, TaskRecord] = field(default_factory=dict)

    def put(self, *records: TaskRecord) -> None:
        """Store records."""
        self.records |= {each.id: each for each in records}

    def change(self, task_id: str, **fields: Any) -> None:
        """Change a record."""
        self.records[task_id] = replace(self.records[task_id], **fields)

    def settled(self, task_id: str) -> Settled | None:
        """What became of a task."""
        wanted = self.records[task_id]
        known = related([wanted], lambda ids: {each: self.records[each] for each in ids if each in self.records}, NOW)
        return settled(wanted, known, NOW)

    def is_open(self, task_id: str, owner: str | None = None) -> bool:
        """Whether a list of open failures has a task."""
        return self.records[task_id].status == "failed" and is_open(self.settled(task_id), owner)

    def replay(self, old_id: str, status: Any, owner: str = "ops") -> str:
        """Replay a task."""
        new_id = f"replay-{len(self.records)}"
        started_by = StartedBy(kind="replay", name=old_id)
        self.put(record(new_id, status, len(self.records), owner=owner, started_by=started_by))
        self.change(old_id, replayed=ReplayLink(id=new_id, at=format_time(NOW), by=owner), dismissed=None)
        return new_id


steps = st.lists(st.tuples(st.integers(0, 9), st.sampled_from((*ENDS, "dismiss"))), max_size=7)


@pytest.mark.rule("13.resolution.once", "13.resolution.again")
@given(steps)
def test_the_work_of_one_task_counts_once_or_not_at_all(history: list[tuple[int, str]]) -> None:
    """Whatever of its tasks is replayed: the last replay decides, and one task stands for an open failure."""
    table, last = Table(), "env-1"
    table.put(record("env-1", owner="alice"))
    is_dismissed = False
    for number, step in history:
        task_id = sorted(table.records)[number % len(table.records)]
        found = table.settled(task_id)
        if found is not None and not found.resolution.is_open:
            continue  # refused
        if step != "dismiss":
            if table.records[task_id].status in ("failed", "canceled"):
                last = table.replay(task_id, step)
        elif table.records[task_id].status == "failed":
            table.change(task_id, dismissed=Dismissal(at=format_time(NOW), by="ops", reason="a test"))
            is_dismissed = True
    counted = [task_id for task_id in table.records if table.is_open(task_id)]
    is_done = is_dismissed or table.records[last].status in ("succeeded", "running", "pending")
    assert len(counted) == (0 if is_done else 1), (counted, table.records)
    assert table.is_open("env-1", "alice") is not is_done  # alice sees no replay of the operators


@pytest.mark.rule("13.resolution")
@pytest.mark.parametrize(
    ("status", "lease_until", "expected"),
    [
        ("pending", None, False),
        ("pending", "2026-11-20T09:00:00.000000Z", True),
        ("running", "2026-11-20T09:00:00.000000Z", False),
        ("paused", None, False),
        ("succeeded", None, False),
        ("canceled", None, True),
        ("failed", None, True),
    ],
)
def test_the_state_of_the_replay_decides(status: Any, lease_until: str | None, expected: bool) -> None:
    table = Table()
    link = ReplayLink(id="env-2", at="2026-11-20T09:00:00.000000Z", by="ops", lease_until=lease_until)
    table.put(record("env-1", replayed=link), record("env-2", status))
    found = table.settled("env-1")
    assert found is not None
    assert found.resolution == Resolution(
        how="replayed",
        at=link.at,
        by="ops",
        task="env-2",
        status=status,
        is_open=expected,
    )


@pytest.mark.rule("12.link.died")
def test_a_link_to_no_task_counts_as_none() -> None:
    table = Table()
    table.put(record("env-1", replayed=ReplayLink(id="env-2", at="2026-11-20T09:00:00.000000Z", by="ops")))
    assert table.settled("env-1") is None


def test_a_replay_of_an_older_version_has_no_link_and_stays_open() -> None:
    table = Table()
    table.put(record("env-1"), record("env-2", started_by=StartedBy(kind="replay", name="env-1")))
    assert (table.is_open("env-1"), table.is_open("env-2")) == (True, True)


@pytest.mark.rule("13.resolution")
def test_an_overdue_replay_has_failed() -> None:
    table = Table()
    table.put(record("env-1"))
    table.change(table.replay("env-1", "running"), deadline_at=format_time(at(5)))
    found = table.settled("env-1")
    assert found is not None
    assert (found.resolution.status, found.resolution.is_open) == ("failed", True)


SLOT = "2026-11-20T01:00:00.000000Z"
FIRST = occurrence_id("nightly", f"slot {SLOT}")


def of_slot(kind: Any = "backfill") -> dict[str, Any]:
    return {"owner": "trigger:nightly", "started_by": StartedBy(kind=kind, name="b-1", slot=SLOT)}


@pytest.mark.rule("13.resolution.slot")
@pytest.mark.parametrize("second", ["succeeded", "failed", "running"])
def test_a_later_success_of_the_slot_overtakes_its_failures(second: str) -> None:
    table = Table()
    table.put(
        record(FIRST, seconds=1, overtaken=("again-1", "again-2"), **of_slot("trigger")),
        record("again-1", seconds=2, **of_slot()),
        record("again-2", second, seconds=3, **of_slot()),
    )
    has_succeeded = second == "succeeded"
    for task_id in (FIRST, "again-1"):
        assert table.is_open(task_id) is not has_succeeded
        found = table.settled(task_id)
        assert (found is not None) is has_succeeded
        if found is not None:
            assert found.resolution == Resolution(how="overtaken", task="again-2", status="succeeded")


@pytest.mark.rule("13.resolution.slot")
def test_an_earlier_success_of_the_slot_overtakes_nothing() -> None:
    """The slot is run again because its first result was wrong."""
    table = Table()
    table.put(
        record(FIRST, "succeeded", seconds=1, overtaken=("again-1",), **of_slot("trigger")),
        record("again-1", seconds=2, **of_slot()),
    )
    assert table.is_open("again-1")


@pytest.mark.rule("13.resolution")
def test_records_that_name_each_other_end() -> None:
    """Records are data of a table: no chain of them may keep a reader busy."""
    table = Table()
    for old, new in (("env-1", "env-2"), ("env-2", "env-1")):
        link = ReplayLink(id=new, at=format_time(NOW), by="ops")
        table.put(
            record(old, replayed=link, parent_id=new, set_id="set", started_by=StartedBy(kind="replay", name=new))
        )
    assert table.settled("env-1") is not None
