"""Slots of schedules, checked against a second implementation of cron where the two must agree."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter

from asya.capabilities.triggers.occurrences import slot_values
from asya.capabilities.triggers.slots import check_cron, is_slot, last_slot, slots_after, slots_between
from asya.protocol.triggers import Schedule

OSLO = "Europe/Oslo"


def local_slots(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next slots in local time with their offsets."""
    moment = datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone))
    found = islice(slots_after(Schedule(cron=cron, timezone=zone), moment.astimezone(UTC)), count)
    return [slot.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M%z") for slot in found]


@pytest.mark.rule("16.slots.daylight-saving")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "slots"),
    [
        # Spring in Oslo: the clock goes from 02:00 to 03:00 on March 29, 2026.
        ("30 2 * * *", OSLO, "2026-03-28T00:00", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
        ("0 2 * * *", OSLO, "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 02:00+0200"]),
        ("0 3 * * *", OSLO, "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 03:00+0200"]),
        ("30 * * * *", OSLO, "2026-03-29T00:00", ["03-29 00:30+0100", "03-29 01:30+0100", "03-29 03:30+0200"]),
        # Autumn in Oslo: the clock goes from 03:00 back to 02:00 on October 25, 2026.
        ("30 2 * * *", OSLO, "2026-10-24T12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 * * * *", OSLO, "2026-10-25T01:00", ["10-25 01:30+0200", "10-25 02:30+0200", "10-25 02:30+0100"]),
        # Half an hour, on an island.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["10-04 02:30+1100", "10-05 02:15+1100"]),
        # At midnight.
        ("0 0 * * *", "America/Havana", "2026-03-07T12:00", ["03-08 01:00-0400", "03-09 00:00-0400"]),
        ("30 0 * * *", "America/Havana", "2026-10-31T12:00", ["11-01 00:30-0400", "11-02 00:30-0500"]),
        # South of the equator.
        ("30 2 * * *", "America/Santiago", "2026-04-04T12:00", ["04-05 02:30-0400"]),
        # Leap days.
        ("0 12 29 2 *", "UTC", "2026-01-01T00:00", ["02-29 12:00+0000"]),
    ],
)
def test_16_slots_in_local_time(cron: str, zone: str, after: str, slots: list[str]) -> None:
    """Clock changes, leap days, and zones of all kinds."""
    assert local_slots(cron, zone, after, len(slots)) == slots


@pytest.mark.rule("16.slots")
def test_16_a_leap_day_is_in_a_leap_year() -> None:
    """The next February 29 after 2026 is in 2028, then in 2032; 2100 has none."""
    schedule = Schedule(cron="0 0 29 2 *")
    assert [slot.year for slot in islice(slots_after(schedule, datetime(2026, 1, 1, tzinfo=UTC)), 2)] == [2028, 2032]
    assert next(slots_after(schedule, datetime(2096, 3, 1, tzinfo=UTC))).year == 2104


EXPRESSIONS = (
    *("* * * * *", "*/15 * * * *", "0 2 * * *", "7 */5 * * *", "0 0 1 * *", "0 0 29 2 *", "30 6 * * 1-5"),
    *("0 0 13 * 5", "59 23 31 12 *", "0 8-18/2 * * mon,wed,fri", "5 4 * jan-mar sun", "0 0 1,15 * *"),
)


@pytest.mark.rule("16.slots")
@pytest.mark.parametrize("cron", EXPRESSIONS)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Asia/Tokyo"])
def test_16_slots_agree_with_a_second_implementation(cron: str, zone: str) -> None:
    """Without clock changes both have the same slots for a year, across its end."""
    start = datetime(2027, 6, 1, 0, 30, tzinfo=ZoneInfo(zone))
    other = croniter(cron, start, ret_type=datetime)
    expected = [other.get_next(datetime).astimezone(UTC) for _ in range(200)]
    schedule = Schedule(cron=cron, timezone=zone)
    assert list(islice(slots_after(schedule, start.astimezone(UTC)), 200)) == expected


@pytest.mark.rule("16.slots.daylight-saving")
@pytest.mark.parametrize("cron", ["0 12 * * *", "30 6 * * 1-5", "0 0 1 * *"])
@pytest.mark.parametrize("zone", [OSLO, "America/New_York", "Australia/Lord_Howe"])
def test_16_slots_outside_a_gap_agree_across_clock_changes(cron: str, zone: str) -> None:
    """A slot that no change touches has the local time of its expression all the year."""
    start = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    other = croniter(cron, start.replace(tzinfo=None), ret_type=datetime)
    # The second one counts in local time without a zone, so no clock change confuses it.
    naive = [other.get_next(datetime) for _ in range(400)]
    expected = [slot.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for slot in naive]
    assert list(islice(slots_after(Schedule(cron=cron, timezone=zone), start.astimezone(UTC)), 400)) == expected


@pytest.mark.parametrize(
    ("cron", "zone"), [("30 2 * * *", OSLO), ("*/10 * * * *", OSLO), ("0 0 29 2 *", "UTC"), ("0 0 * * *", "UTC")]
)
def test_slots_are_found_from_both_sides(cron: str, zone: str) -> None:
    """A slot is a slot, and it is the last one until the next."""
    schedule = Schedule(cron=cron, timezone=zone)
    first, second = islice(slots_after(schedule, datetime(2027, 3, 27, 12, tzinfo=UTC)), 2)
    assert is_slot(schedule, first)
    assert not is_slot(schedule, first + timedelta(seconds=1))
    if second - first < timedelta(days=400):
        assert last_slot(schedule, second - timedelta(seconds=1)) == first
        assert last_slot(schedule, second) == second
    assert list(slots_between(schedule, first, second)) == [second]


@pytest.mark.rule("16.messages")
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_16_the_ends_of_the_calendar_are_no_slots(text: str) -> None:
    """A message with such a time would come again and again."""
    assert not is_slot(Schedule(cron="0 3 * * *", timezone=OSLO), datetime.fromisoformat(text))


def test_a_yearly_schedule_has_its_last_slot_until_the_next_one() -> None:
    """The last day of a year lies 364 to 366 days after its first moment."""
    yearly = Schedule(cron="0 0 1 1 *")
    assert last_slot(yearly, datetime(2028, 12, 31, 23, tzinfo=UTC)) == datetime(2028, 1, 1, tzinfo=UTC)


def test_a_rare_schedule_may_have_no_last_slot() -> None:
    """The search ends."""
    assert last_slot(Schedule(cron="0 0 29 2 *"), datetime(2027, 12, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 2 * *", "five fields"),
        ("0 0 2 * * *", "five fields"),
        ("0 25 * * *", "Bad hour"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("@daily", "five fields"),
        ("", "five fields"),
        ("*/90 * * * *", "'\\*/90' steps over the 60 values of the minute"),
        ("1,5/61 * * * *", "'5/61' steps over the 60 values of the minute"),
        ("0-10/12 * * * *", "'0-10/12' steps over the 11 values of the minute"),
        ("0 */36 * * *", "steps over the 24 values of the hour"),
        ("0 0 */45 * *", "steps over the 31 values of the day of the month"),
        ("0 0 1 */18 *", "steps over the 12 values of the month"),
        ("0 0 * * */14", "steps over the 7 values of the day of the week"),
    ],
)
def test_a_wrong_expression_is_named(text: str, problem: str) -> None:
    """The message has the expression and what is wrong with it."""
    with pytest.raises(ValueError, match=problem):
        check_cron(text)


@pytest.mark.parametrize(
    "text", ["*/60 * * * *", "0 */24 * * *", "0-10/11 * * * *", "0 0 1 JAN-DEC/3 *", "0 0 * * MON#2", "7 */5 * * *"]
)
def test_steps_within_a_field_are_taken(text: str) -> None:
    assert check_cron(text) == text


@pytest.mark.rule("16.slots")
@pytest.mark.parametrize(
    ("zone", "month"),
    [
        (OSLO, 10),
        ("America/New_York", 11),
        ("America/Los_Angeles", 11),
        ("Australia/Lord_Howe", 4),
        ("Pacific/Chatham", 4),
        ("Asia/Kolkata", 10),
    ],
)
def test_16_no_two_slots_have_the_same_values(zone: str, month: int) -> None:
    """In the hour that comes twice, date and time name its second pass by the offset."""
    schedule = Schedule(cron="*/10 * * * *", timezone=zone)
    first = datetime(2026, month, 1, tzinfo=UTC)
    slots = list(slots_between(schedule, first, first + timedelta(days=31)))
    values = [slot_values(schedule, slot) for slot in slots]
    assert len({(each["date"], each["time"]) for each in values}) == len(slots)
    assert sum(len(each["time"]) > len("02:00") for each in values) == {
        "Asia/Kolkata": 0,
        "Australia/Lord_Howe": 3,
    }.get(zone, 6)
