"""What a request for a backfill may ask for."""

from datetime import UTC, datetime
from typing import Any

import pytest

from asya.capabilities.triggers.operators.answers import BackfillRequest
from asya.capabilities.triggers.operators.backfill import Backfill
from asya.capabilities.triggers.operators.requests import count_slots, new_backfill
from asya.protocol.api_errors import ApiError
from asya.protocol.triggers import ObjectSource, Schedule, Trigger

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
NIGHTLY = Trigger(route=("greet",), cron="0 2 * * *", timezone="Europe/Oslo")


def begin(trigger: Trigger = NIGHTLY, **fields: Any) -> Backfill:
    request = BackfillRequest(**{"trigger": "nightly", "from_": "2026-01-01", "to": "2026-01-31"} | fields)
    return new_backfill(request, trigger, "b1", "AIDA", NOW)


@pytest.mark.rule("16.backfill")
def test_16_a_backfill_has_the_slots_of_its_days_in_the_zone() -> None:
    """The last day counts, and the future does not."""
    backfill = begin()
    assert (backfill.total, backfill.first, backfill.at_once) == (31, "2025-12-31T23:00:00.000000Z", 1)
    assert backfill.following(1) == ["2026-01-01T01:00:00.000000Z"]
    assert len(backfill.following(100)) == 31
    assert begin(from_="2026-11-24", to="2026-12-24").total == 2
    assert begin(from_="2026-01-02T02:00", to="2026-01-02T02:00").total == 1
    assert begin(stop_after=3).stop_at == 3


@pytest.mark.rule("16.backfill")
@pytest.mark.parametrize(
    ("fields", "field", "problem"),
    [
        ({"from_": "soon"}, "from", "from should be a time such as"),
        ({"from_": "0001-01-01T00:00:00Z"}, "from", "from should be a time since 1900 such as"),
        ({"to": "never"}, "to", "to should be a time such as"),
        ({"to": "2025-12-31"}, "from", "from is 2026-01-01, which is after to, 2025-12-31"),
        ({"from_": "2027-01-01", "to": "2027-02-01"}, "from", "that is past"),
        ({"at_once": 0}, "at_once", "at_once is 0; it must be from 1 to 100"),
        ({"at_once": 101}, "at_once", "from 1 to 100"),
        ({"stop_after": 0}, "stop_after", "from 1 to 10,000"),
    ],
)
def test_16_a_wrong_request_names_its_field(fields: dict[str, Any], field: str, problem: str) -> None:
    """With what is allowed."""
    with pytest.raises(ApiError, match=problem) as raised:
        begin(**fields)
    assert (raised.value.status, raised.value.field) == (400, field)


@pytest.mark.rule("16.backfill")
def test_16_a_backfill_has_a_limit() -> None:
    """Of slots, before it counts them all."""
    minutely = Trigger(route=("greet",), cron="* * * * *")
    with pytest.raises(ApiError, match="10,000 slots at most"):
        begin(minutely, from_="1970-01-01", to="2026-01-01")


@pytest.mark.rule("16.backfill.waits", "16.fire.refused")
@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        (Trigger(route=("greet",), objects=ObjectSource(bucket="data")), "has no schedule"),
        (Trigger(route=("greet",), cron="0 2 * * *", timezone="Europe/Oslo", enabled=False), "is off"),
    ],
)
def test_16_a_trigger_without_slots_or_off_is_refused(trigger: Trigger, problem: str) -> None:
    """For it would start nothing."""
    with pytest.raises(ApiError, match=problem) as raised:
        begin(trigger)
    assert (raised.value.status, raised.value.code) == (409, "not_startable")


@pytest.mark.rule("16.backfill")
def test_16_a_range_of_one_moment_has_its_slot() -> None:
    schedule, slot = Schedule(cron="0 2 * * *"), datetime(2026, 1, 1, 2, tzinfo=UTC)
    assert count_slots(schedule, slot, slot) == 1
    assert count_slots(schedule, slot + datetime.resolution, slot) == 0
    assert count_slots(schedule, slot - datetime.resolution, slot - datetime.resolution) == 0


@pytest.mark.rule("16.backfill")
@pytest.mark.parametrize(("cron", "zone"), [("30 0 * * *", "Europe/Oslo"), ("30 23 * * *", "America/Los_Angeles")])
def test_16_a_day_begins_and_ends_at_midnight_of_the_zone(cron: str, zone: str) -> None:
    trigger = Trigger(route=("greet",), cron=cron, timezone=zone)
    assert begin(trigger, from_="2026-01-30", to="2026-01-31").total == 2
