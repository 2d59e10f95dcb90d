"""Decides whether ends may wait for longer than a minute in the queue `x-ends` (`protocol §13`, backstop).

SQS does not tell the age of a queue's oldest message in time. So the function that consumes the queue leaves marks of what it
received, and the queue tells how many messages it holds.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

# The age of a message on `x-ends` beyond which the deadline sweep waits for it.
LATE_AGE = timedelta(seconds=60)
# A message that was kept returns within this time.
LATE_WINDOW = timedelta(seconds=180)

Delay = Literal["none", "unknown", "late"]


@dataclass(frozen=True, slots=True)
class EndsMark:
    """When messages of `x-ends` were consumed last.

    Attributes:
        fresh_at: when one of at most a minute's age was written; None before the first one.
        late_at: when an older one was received; None before the first one.
    """

    fresh_at: datetime | None = None
    late_at: datetime | None = None


def delay(mark: EndsMark, *, waiting: int, now: datetime) -> Delay:
    """The delay of ends.

    Args:
        waiting: the messages of the queue, also those in flight.

    Returns:
        `none` if no end is over a minute old; `unknown` if nothing shows that the queue is consumed.
    """
    if not waiting:
        return "none"
    if mark.late_at is not None and now - mark.late_at <= LATE_WINDOW:
        return "late"
    is_consumed = mark.fresh_at is not None and now - mark.fresh_at <= LATE_AGE
    return "none" if is_consumed else "unknown"
