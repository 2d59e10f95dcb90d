"""Times as operators write them: in UTC, or local in the zone of a schedule."""

from datetime import UTC, datetime, timedelta

import pytest

from asya.capabilities.triggers.operators.requests import read_end, read_moment, read_start

OSLO = "Europe/Oslo"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.rule("16.fire")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-25T01:00:00Z", utc(2026, 11, 25, 1)),
        ("2026-11-25T02:00:00+02:00", utc(2026, 11, 25)),
        ("2026-11-25T02:00", utc(2026, 11, 25, 1)),
        ("2026-11-25 02:00", utc(2026, 11, 25, 1)),
        ("2026-11-25", utc(2026, 11, 24, 23)),
        ("2026-07-01T02:00", utc(2026, 7, 1)),
        # The clock skips this time, and the gap ends at 03:00.
        ("2026-03-29T02:30", utc(2026, 3, 29, 1)),
        # It comes twice, and this is the first one.
        ("2026-10-25T02:30", utc(2026, 10, 25, 0, 30)),
    ],
)
def test_16_a_time_is_local_unless_it_has_an_offset(text: str, moment: datetime) -> None:
    """Also on the days on which the clock changes."""
    assert read_moment(text, OSLO) == moment


@pytest.mark.rule("16.backfill")
def test_16_a_day_is_that_of_the_zone_and_the_last_one_counts() -> None:
    """A day of a change of the clock has 23 or 25 hours."""
    instant = timedelta(microseconds=1)
    for day, begin, end in (
        ("2026-11-25", utc(2026, 11, 24, 23), utc(2026, 11, 25, 23)),
        ("2026-03-29", utc(2026, 3, 28, 23), utc(2026, 3, 29, 22)),
        ("2026-10-25", utc(2026, 10, 24, 22), utc(2026, 10, 25, 23)),
    ):
        assert (read_start(day, OSLO), read_end(day, OSLO)) == (begin, end - instant)
    assert read_start("2026-11-25T02:00", OSLO) == read_end("2026-11-25T02:00", OSLO) == utc(2026, 11, 25, 1)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "2026-11-25T25:00", "9999-12-31T23:00", "x" * 50])
def test_16_another_text_is_refused_with_an_example(text: str) -> None:
    """No text of a caller crashes."""
    with pytest.raises(ValueError, match="should be a time such as 2026-11-25, 2026-11-25T02:00 or"):
        read_moment(text, "America/New_York")
    with pytest.raises(ValueError, match="should be a time such as"):
        read_end(text or "9999-12-31", "America/New_York")


@pytest.mark.parametrize("zone", ["UTC", OSLO, "America/New_York"])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0001-01-01T00:00", "0001-01-02", "1899-12-30"])
def test_16_an_empty_time_is_refused(text: str, zone: str) -> None:
    """Programs send year 1 for no time, and no slot lies before it."""
    for read in (read_moment, read_start, read_end):
        with pytest.raises(ValueError, match="should be a time"):
            read(text, zone)
