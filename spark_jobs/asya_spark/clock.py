"""How long a run may still take: EMR Serverless ends it without asking when its time is up (`protocol §10`)."""

import time
from datetime import UTC, datetime

# What the service's clock may be ahead of ours (it runs while the driver starts), and what it takes to leave in order.
MARGIN_SECONDS = 5 * 60.0
MARGIN_SHARE = 0.2


class RunClock:
    """Counts from the start of this process.

    Args:
        minutes: after which the service ends the run.
    """

    def __init__(self, minutes: float, began: float) -> None:
        seconds = minutes * 60
        self._ends = began + seconds - min(MARGIN_SECONDS, MARGIN_SHARE * seconds)

    def left(self) -> float:
        """Seconds in which user code may still work."""
        return self._ends - time.monotonic()


def now_text() -> str:
    """Now, RFC 3339 in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
