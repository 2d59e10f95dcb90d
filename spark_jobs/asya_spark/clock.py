"""The time of a run, and what is left before EMR Serverless ends it (`protocol §10`)."""

import time
from datetime import UTC, datetime

# Reserve for the start of the driver, which counts toward the limit, and for the commit.
MARGIN_SECONDS = 5 * 60.0
MARGIN_SHARE = 0.2


class RunClock:
    """Measures the time left, from the start of this process.

    Args:
        minutes: the limit after which EMR Serverless ends the run.
        started_at: the start of this process, or of this batch, on the monotonic clock.
        within: the clock of the job run that has this batch; None for a run that is all of its job run.
    """

    def __init__(self, minutes: float, started_at: float, within: "RunClock | None" = None) -> None:
        seconds = minutes * 60
        self._ends = started_at + seconds - min(MARGIN_SECONDS, MARGIN_SHARE * seconds)
        if within is not None:
            self._ends = min(self._ends, within._ends)

    def left(self) -> float:
        """Seconds left for user code."""
        return self._ends - time.monotonic()


def now() -> datetime:
    """The current time in UTC. Modules of the job library read it here alone, so a test can replace it."""
    return datetime.now(UTC)


def now_text() -> str:
    """The current time in UTC as RFC 3339."""
    return _text(now())


def text_of(milliseconds: int) -> str:
    """A time of Java, in milliseconds since 1970, as RFC 3339."""
    return _text(datetime.fromtimestamp(milliseconds / 1000, UTC))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
