"""Which minutes the deadline sweep has not finished (`protocol §13`, backstop)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

# The last minutes are read again, because index entries and records may arrive late.
REREAD_WINDOW = timedelta(minutes=3)
# The first sweep of a mesh starts this far back.
INITIAL_WINDOW = timedelta(minutes=30)


def unswept_minutes(mark: datetime | None, until: datetime) -> Iterator[datetime]:
    """The minutes whose deadlines may have passed without an end in the record, oldest first.

    Args:
        mark: the last minute that a sweep has processed; None before the first sweep.
        until: the end of the last minute.
    """
    start = min(mark or until - INITIAL_WINDOW, until - REREAD_WINDOW)
    minute = start.replace(second=0, microsecond=0)
    while minute <= until:
        yield minute
        minute += timedelta(minutes=1)
