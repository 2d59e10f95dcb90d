"""Stopping user code that takes too long, with the process fit to go on (`protocol §5.7`, `§5.11`)."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# A handler may swallow the first interruption (`except BaseException`); it is repeated, and in the end the function's own
# timeout is what stops it.
REPEAT_SECONDS = 1.0


class TimeLimitReached(BaseException):
    """Raised inside user code when its time is up. A BaseException, so that `except Exception` lets it pass."""


class Stopwatch:
    """The time a handler may take, running from its making."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self._end - time.monotonic())


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitReached` in the enclosed code once the time is up.

    Signals reach only the main thread; elsewhere (a test that runs handlers in threads) the function's own timeout remains.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise TimeLimitReached

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.000_1), REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
