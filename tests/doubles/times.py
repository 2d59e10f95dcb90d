"""The times that a sender may write: any of the calendar, and often its ends."""

from datetime import UTC

from hypothesis import strategies as st

from asya.protocol.times import format_time

TIME_ENDS = [
    "0001-01-01T00:00:00.000000Z",
    "1969-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00.000000Z",
    "9998-12-31T00:00:00.000000Z",
    "9999-12-31T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z",
]
TIMES = st.sampled_from(TIME_ENDS) | st.datetimes(timezones=st.just(UTC)).map(format_time)
