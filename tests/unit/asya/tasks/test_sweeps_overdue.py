"""The minutes that the sweep of deadlines reads."""

from datetime import UTC, datetime, timedelta

import pytest

from asya.tasks.sweeps import INITIAL_WINDOW, REREAD_WINDOW, unswept_minutes

NOW = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def minutes(first: datetime) -> list[datetime]:
    """All minutes from this one until now."""
    start = first.replace(second=0)
    return [start + number * MINUTE for number in range(int((NOW - start) / MINUTE) + 1)]


@pytest.mark.rule("13.backstop.written")
def test_the_last_minutes_are_read_again() -> None:
    """Entries of the index and records may come late."""
    for mark in (NOW, NOW - MINUTE, NOW - REREAD_WINDOW):
        assert list(unswept_minutes(mark, NOW)) == minutes(NOW - REREAD_WINDOW)


@pytest.mark.rule("13.backstop.written")
def test_a_sweep_goes_on_after_an_outage() -> None:
    assert list(unswept_minutes(NOW - 10 * MINUTE, NOW)) == minutes(NOW - 10 * MINUTE)
    assert list(unswept_minutes(None, NOW)) == minutes(NOW - INITIAL_WINDOW)
