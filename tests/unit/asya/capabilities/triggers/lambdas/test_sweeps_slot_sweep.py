"""Schedules end to end, against a second implementation: croniter for the slots, and a model of overlap, outages and catch-up.

The model knows only the words of the protocol: when a slot is due, how late it may start, and what happens while a task runs.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from croniter import croniter

from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.lambdas.sweeps import SlotSweep
from asya.capabilities.triggers.slots import ScheduleState, schedule_digest
from asya.function.aws.telemetry import Telemetry
from asya.protocol.times import parse_time
from asya.protocol.triggers import Trigger
from asya.testing import Mesh
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo

MESH = """
namespace: shop
actors:
  work: {{kind: wait, wait: {{for: {lasts}}}}}
triggers:
  clock: {{route: [work], cron: "{cron}", timezone: {zone}, catch_up: {catch_up}, overlap: {overlap}}}
"""
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Case:
    """A schedule from its first sweep to a time between two slots.

    Attributes:
        start: the first sweep, in local time.
        hours: how long the schedule is watched.
        lasts: the hours that a task takes.
        outage: the hours after the start between which no sweep runs; None for no outage.
        catch_up: the hours that a slot may be late.
    """

    cron: str
    zone: str
    start: str
    hours: float
    lasts: float
    outage: tuple[float, float] | None = None
    catch_up: float = 2

    @property
    def begins(self) -> datetime:
        """The time of the first sweep."""
        return datetime.fromisoformat(self.start).replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC)

    @property
    def ends(self) -> datetime:
        """The time of the verdict."""
        return self.begins + self.hours * HOUR


MODES = ("allow", "skip", "queue", "cancel-previous")
CASES = {
    "hours": Case("0 * * * *", "UTC", "2026-11-25T12:20", 6.9, 1.5),
    "hours of an outage": Case("0 * * * *", "UTC", "2026-11-25T12:20", 9.4, 1.5, (1.0, 5.2)),
}
"""Each of them in all modes."""
GAP = Case("30 2 * * *", "Europe/Oslo", "2026-03-27T12:00", 80, 30)
REPEATED_HOUR = Case("30 2 * * *", "Europe/Oslo", "2026-10-23T12:00", 80, 30)
FURTHER = {
    "a gap in spring, skip": (GAP, "skip"),
    "a gap in spring, queue": (GAP, "queue"),
    "a repeated hour in autumn, allow": (REPEATED_HOUR, "allow"),
    "a repeated hour in autumn, cancel-previous": (REPEATED_HOUR, "cancel-previous"),
    "short tasks after an outage": (Case("0 * * * *", "UTC", "2026-11-25T12:20", 9.8, 0.3, (1.0, 5.2)), "allow"),
    "an outage over the gap": (Case("30 2 * * *", "Europe/Oslo", "2026-03-27T12:00", 80, 30, (30, 40), 20), "queue"),
    "an outage in autumn": (Case("30 2 * * *", "Europe/Oslo", "2026-10-23T12:00", 80, 5, (30, 40), 3), "allow"),
    "half an hour on an island": (Case("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", 60, 30), "skip"),
    "a leap day": (Case("0 0 29 2 *", "UTC", "2028-02-28T12:00", 30, 5), "allow"),
    "no leap day": (Case("0 0 29 2 *", "UTC", "2027-02-28T12:00", 30, 5), "allow"),
    "around a leap day": (Case("0 12 28,29 2 *", "UTC", "2028-02-28T06:00", 64, 30), "cancel-previous"),
}
TABLE = {f"{name}, {mode}": (case, mode) for name, case in CASES.items() for mode in MODES} | FURTHER


def slots(case: Case) -> list[datetime]:
    """The slots up to the verdict: those of croniter in local time, without a clock change.

    A local time that does not exist becomes the end of its gap, and one that exists twice is the first.
    """
    zone = ZoneInfo(case.zone)
    if case.cron.startswith("0 *"):
        zone = ZoneInfo("UTC")
    other = croniter(case.cron, case.begins.astimezone(zone).replace(tzinfo=None), ret_type=datetime)
    found = (_existing(other.get_next(datetime), zone) for _ in range(1000))
    return list(takewhile(lambda slot: slot <= case.ends, found))


def _existing(local: datetime, zone: ZoneInfo) -> datetime:
    while (slot := local.replace(tzinfo=zone).astimezone(UTC)).astimezone(zone).replace(tzinfo=None) != local:
        local += timedelta(minutes=1)
    return slot


def arrivals(case: Case) -> list[tuple[datetime, datetime]]:
    """When a sweep sends each slot that it does not miss: (time, slot), in order."""
    sent = []
    for slot in slots(case):
        at = slot
        if case.outage is not None:
            stops, goes_on = (case.begins + hours * HOUR for hours in case.outage)
            at = goes_on if stops < slot < goes_on else slot
        if at - slot <= case.catch_up * HOUR:
            sent.append((at, slot))
    return sent


def expected(case: Case, overlap: str) -> dict[datetime, str]:
    """The state of the task of each slot at the verdict; slots without a task are left out."""
    running: dict[datetime, datetime] = {}  # the end of the task of each slot
    canceled: set[datetime] = set()
    for at, slot in arrivals(case):
        busy = [each for each, end in running.items() if end > at and each not in canceled]
        begins = at
        if busy and overlap == "skip":
            continue
        if busy and overlap == "queue":
            begins = max(running[each] for each in busy)
        if overlap == "cancel-previous":
            canceled.update(busy)
        if begins <= case.ends:
            running[slot] = begins + case.lasts * HOUR
    return {
        slot: "canceled" if slot in canceled else "succeeded" if end <= case.ends else "running"
        for slot, end in running.items()
    }


@pytest.mark.rule("16.slots", "16.slots.daylight-saving", "16.due.catch-up", "16.overlap", "16.overlap.slots")
@pytest.mark.rule("16.overlap.skip", "16.overlap.queue", "16.overlap.cancel-previous")
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.slow
def test_16_schedules_agree_with_a_model(tmp_path: Path, name: str) -> None:
    """The same slots start, are missed, skipped, queued and canceled."""
    case, overlap = TABLE[name]
    settings = {"cron": case.cron, "zone": case.zone, "overlap": overlap}
    times = {"lasts": f"{case.lasts * 60:.0f}m", "catch_up": f"{case.catch_up * 60:.0f}m"}
    (tmp_path / "mesh.yaml").write_text(MESH.format(**settings, **times))
    mesh = Mesh(tmp_path / "mesh.yaml", start=case.begins - timedelta(minutes=1))
    mesh.travel(minutes=1)
    if case.outage is not None:
        stops, goes_on = case.outage
        mesh.travel(hours=stops)
        mesh.cloud.system.fails_overdue_tasks = False
        mesh.travel(hours=goes_on - stops)
        mesh.cloud.system.fails_overdue_tasks = True
    mesh.travel(seconds=(case.ends - mesh.now).total_seconds())
    found = {}
    for run in mesh.runs():
        task = mesh.ask("GET", f"/api/v1/mesh/{run.id}", dict)
        found[parse_time(task["started_by"]["slot"])] = task["status"]
    assert found == expected(case, overlap)
    assert mesh.dead_letters == ()


@pytest.mark.rule("16.due.catch-up")
def test_16_the_first_and_the_last_missed_slot_are_logged(tmp_path: Path) -> None:
    """An operator starts them by a backfill from the one to the other."""
    settings = {"cron": "0 * * * *", "zone": "UTC", "overlap": "allow", "lasts": "1m", "catch_up": "60m"}
    (tmp_path / "mesh.yaml").write_text(MESH.format(**settings))
    mesh = Mesh(tmp_path / "mesh.yaml", start=datetime(2026, 11, 25, 12, 20, tzinfo=UTC))
    mesh.travel(minutes=2)
    mesh.cloud.system.fails_overdue_tasks = False
    mesh.travel(hours=5)
    mesh.cloud.system.fails_overdue_tasks = True
    mesh.travel(minutes=1)
    (line,) = [line for line in mesh.log if "slots missed" in line]
    assert "count=4, first=2026-11-25T13:00:00.000000Z, last=2026-11-25T16:00:00.000000Z" in line
    assert len(mesh.runs()) == 1


@pytest.mark.rule("16.due.catch-up", "16.overlap.slots")
@pytest.mark.parametrize("overlap", MODES)
@pytest.mark.slow
def test_16_late_slots_start_oldest_first(tmp_path: Path, overlap: str) -> None:
    """Whatever the overlap: here after an outage of five hours, more slots than a batch of SQS has."""
    settings = {"cron": "*/15 * * * *", "zone": "UTC", "overlap": overlap, "lasts": "1m", "catch_up": "24h"}
    (tmp_path / "mesh.yaml").write_text(MESH.format(**settings))
    mesh = Mesh(tmp_path / "mesh.yaml", start=datetime(2026, 11, 25, 11, 50, tzinfo=UTC))
    mesh.travel(minutes=2)
    mesh.cloud.system.fails_overdue_tasks = False
    mesh.travel(hours=5)
    mesh.cloud.system.fails_overdue_tasks = True
    mesh.travel(hours=1)
    slots = [found[1] for line in mesh.log if (found := re.search(r"task started.*key=slot (\S+?)[,\s]", line))]
    assert slots == sorted(slots)
    assert len(slots) >= (24 if overlap in ("allow", "queue") else 5)


def test_the_model_tells_the_modes_apart() -> None:
    """A table in which all modes agreed would show nothing about them."""
    case = CASES["hours"]
    assert len({tuple(expected(case, overlap).items()) for overlap in MODES}) == len(MODES)
    assert len(slots(case)) - len(expected(case, "skip")) == 3
    outage = CASES["hours of an outage"]
    assert len(slots(outage)) - len(arrivals(outage)) == 2


@pytest.mark.rule("16.due.off")
def test_16_a_schedule_that_was_removed_begins_anew() -> None:
    """No slot of the time in between starts, although catch_up is longer. Its pause stays, as that of a webhook does."""
    tables = MemoryDynamo({"asya-shop-tasks": new_table("tasks")})
    states = ScheduleStates(tables, "asya-shop-tasks")  # type: ignore[arg-type]
    hourly = Trigger(route=("work",), cron="0 * * * *", catch_up=86400.0)
    began = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
    for name in ("quarterly", "hook"):
        states.pause(name, began)
    sent: list[datetime] = []

    def sweep(hours: float, **triggers: Trigger) -> None:
        services: Any = SimpleNamespace(
            settings=SimpleNamespace(table=SimpleNamespace(triggers=triggers)),
            telemetry=Telemetry("shop", "x-task-sweep"),
        )
        sender: Any = SimpleNamespace(send=lambda _, due, **__: sent.extend(due))
        SlotSweep(services, states, sender).sweep(began + hours * HOUR)

    for hours in (0, 1):
        sweep(hours, hourly=hourly, quarterly=hourly)
    assert sent == [began + 0.5 * HOUR]
    for hours in (2, 4):
        sweep(hours)
    for hours in (5, 6):
        sweep(hours, hourly=hourly, quarterly=hourly)
    assert sent == [began + 0.5 * HOUR, began + 5.5 * HOUR]
    assert {name for name, state in states.read_all().items() if state.paused} == {"quarterly", "hook"}


@pytest.mark.rule("16.due")
def test_16_an_unexpected_error_at_a_trigger_stops_no_other() -> None:
    """Such as a time zone that the function does not have."""
    schedules = {"lost": "Europe/Nowhere", "hourly": "UTC"}
    triggers = {name: Trigger(route=("work",), cron="0 * * * *", timezone=zone) for name, zone in schedules.items()}
    decided = {
        name: ScheduleState(decided=datetime(2026, 11, 25, 12, tzinfo=UTC), schedule=schedule_digest(trigger.schedule))
        for name, trigger in triggers.items()
        if trigger.schedule is not None
    }
    sent: list[str] = []
    services: Any = SimpleNamespace(
        settings=SimpleNamespace(table=SimpleNamespace(triggers=triggers)), telemetry=Telemetry("shop", "x-task-sweep")
    )
    states: Any = SimpleNamespace(read_all=lambda: decided, write=lambda *_: True)
    sender: Any = SimpleNamespace(send=lambda name, due, **_: sent.append(name) if due else None)
    with pytest.raises(ZoneInfoNotFoundError):
        SlotSweep(services, states, sender).sweep(datetime(2026, 11, 25, 13, tzinfo=UTC))
    assert sent == ["hourly"]
