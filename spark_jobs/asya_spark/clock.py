"""The time that a run has left before EMR Serverless ends it (`protocol §10`)."""

import time
from datetime import UTC, datetime

# Reserve for the start of the driver, which counts toward the limit, and for the commit.
MARGIN_SECONDS = 5 * 60.0
MARGIN_SHARE = 0.2


class RunClock:
    """Measures the time left, from the start of this process.

    Args:
        minutes: the limit after which EMR Serverless ends the run.
        started_at: the start of this process on the monotonic clock.
    """

    def __init__(self, minutes: float, started_at: float) -> None:
        seconds = minutes * 60
        self._ends = started_at + seconds - min(MARGIN_SECONDS, MARGIN_SHARE * seconds)

    def left(self) -> float:
        """Seconds left for user code."""
        return self._ends - time.monotonic()


def now_text() -> str:
    """The current time in UTC as RFC 3339."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
