"""Interrupts user code at its time limit; the process stays usable (`protocol §5.7`, `§5.11`)."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol, TypeVar

# A handler may catch the first interruption (`except BaseException`), so the alarm repeats. The timeout of the Lambda
# function stops a handler that catches all of them.
REPEAT_SECONDS = 1.0
# The timer takes zero for "off".
_SHORTEST = 0.000_1

T = TypeVar("T")


class TimeLimitReached(BaseException):
    """The alarm raises this in user code at the time limit. As a BaseException it passes `except Exception`."""


class CoroutineTimedOut(Exception):  # noqa: N818 - the outcome of user code, as above
    """The time limit canceled a coroutine. A TimeoutError that the handler raises is an ordinary error."""


class Timer(Protocol):
    """The clock of the time limits, and the alarm that interrupts handlers."""

    def monotonic(self) -> float:
        """Seconds since an unspecified start; the value never decreases."""

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """The result of `run`; at the time limit `run` is interrupted with `TimeLimitReached`."""


class WallTimer:
    """The clock and the alarm signal of the operating system."""

    def monotonic(self) -> float:
        """See `Timer`."""
        return time.monotonic()

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """See `Timer`."""
        return run_within(seconds, run)


WALL_TIMER = WallTimer()


class TimeBudget:
    """The time that a handler may take. It runs from the creation of this object."""

    def __init__(self, seconds: float, timer: Timer = WALL_TIMER) -> None:
        self.timer = timer
        self._end = timer.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self._end - self.timer.monotonic())


def run_within(seconds: float, run: Callable[[], T]) -> T:
    """Run a function under a time limit and return its result.

    Signals reach the main thread only. In other threads, such as those of tests, the limit has no effect.

    Raises:
        TimeLimitReached: the limit was reached, possibly just after the end of `run`.
    """
    if threading.current_thread() is not threading.main_thread():
        return run()
    before = signal.signal(signal.SIGALRM, _interrupt)
    # The alarm may interrupt any step, including the clean-up, but it repeats only after a second. If it interrupts the
    # inner `finally`, the outer one turns it off, so the alarm never stays on. A context manager would leave a gap before
    # its `__exit__`.
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, _SHORTEST), REPEAT_SECONDS)
            return run()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise TimeLimitReached
