"""protocol §2: times are RFC 3339 in UTC with microseconds; second precision is accepted."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.mesh_keys import LONGEST_TIMEOUT
from asya.protocol.times import deadline_after, format_time, from_epoch_milliseconds, from_epoch_seconds, parse_time


@pytest.mark.rule("2.times")
@given(st.datetimes(timezones=st.just(UTC)))
def test_every_moment_survives(moment: datetime) -> None:
    text = format_time(moment)
    assert parse_time(text) == moment
    assert len(text) == len("2025-11-18T14:30:45.123456Z")
    assert text.endswith("Z")


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    result: datetime | str
    try:
        result = parse_time(text)
    except ValueError as error:
        result = str(error)
    assert repr(text) in result if isinstance(result, str) else result.tzinfo is UTC


@pytest.mark.rule("2.times")
def test_seconds_and_offsets_are_read_into_utc() -> None:
    assert parse_time("2025-11-18T14:30:45Z") == datetime(2025, 11, 18, 14, 30, 45, tzinfo=UTC)
    assert parse_time("2025-11-18T14:30:45.5+02:00") == datetime(2025, 11, 18, 12, 30, 45, 500_000, tzinfo=UTC)
    moment = datetime(2025, 11, 18, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(moment) == "2025-11-18T12:30:00.000000Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2025-11-18",
        "2025-W47-2T10:00:00Z",
        "2025-11-18T14:30:45",
        "2025-11-18 14:30:45Z",
        "0001-01-01T00:00:00+23:59",
    ],
)
def test_a_text_that_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no RFC 3339 time"):
        parse_time(text)


@pytest.mark.rule("2.deadline.longest")
@given(st.datetimes(timezones=st.just(UTC)), st.floats(allow_nan=False))
def test_a_deadline_is_near_and_within_the_calendar(moment: datetime, seconds: float) -> None:
    deadline = deadline_after(moment, seconds)
    assert parse_time(format_time(deadline)) == deadline
    assert moment <= deadline <= deadline_after(moment)
    assert (deadline_after(moment) - moment).total_seconds() <= LONGEST_TIMEOUT
    if 0 <= seconds <= LONGEST_TIMEOUT and moment.year < 9998:
        assert deadline == moment + timedelta(seconds=seconds)


@given(st.floats(allow_nan=False) | st.datetimes(timezones=st.just(UTC)).map(datetime.timestamp))
def test_all_seconds_are_a_time_of_the_calendar(seconds: float) -> None:
    moment = from_epoch_seconds(seconds)
    assert parse_time(format_time(moment)) == moment
    if 0 <= seconds < 2**37:
        assert abs(moment.timestamp() - seconds) < 1e-5


def test_milliseconds_since_1970() -> None:
    assert from_epoch_milliseconds(1_731_940_245_123) == datetime(2024, 11, 18, 14, 30, 45, 123_000, tzinfo=UTC)
