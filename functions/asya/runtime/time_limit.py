"""Stopping user code that takes too long, with the process fit to go on (`protocol §5.7`, `§5.11`)."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol, TypeVar

# A handler may swallow the first interruption (`except BaseException`); it is repeated, and in the end the function's own
# timeout is what stops it.
REPEAT_SECONDS = 1.0
# The timer takes zero for "off".
_SHORTEST = 0.000_1

T = TypeVar("T")


class TimeLimitReached(BaseException):
    """Raised inside user code when its time is up. A BaseException, so that `except Exception` lets it pass."""


class CoroutineTimedOut(Exception):  # noqa: N818 - the outcome of user code, as above
    """A coroutine was cancelled because its time was up (a TimeoutError of the handler's own is an ordinary error)."""


class Timer(Protocol):
    """The clock that handlers run against, and the alarm that interrupts them."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """What `run` returns; `TimeLimitReached` is raised from wherever it is when its time is up before."""


class WallTimer:
    """Real time, real alarms."""

    def monotonic(self) -> float:
        """See `Timer`."""
        return time.monotonic()

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """See `Timer`."""
        return run_within(seconds, run)


WALL_TIMER = WallTimer()


class Stopwatch:
    """The time a handler may take, running from its making."""

    def __init__(self, seconds: float, timer: Timer = WALL_TIMER) -> None:
        self.timer = timer
        self._end = timer.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self._end - self.timer.monotonic())


def run_within(seconds: float, run: Callable[[], T]) -> T:
    """What `run` returns, unless its time is up before.

    Signals reach only the main thread; elsewhere (a test that runs handlers in threads) the function's own timeout remains.

    Raises:
        TimeLimitReached: from wherever `run` was when its time was up; also if that was at its very end.
    """
    if threading.current_thread() is not threading.main_thread():
        return run()
    before = signal.signal(signal.SIGALRM, _interrupt)
    # The alarm may strike between any two steps, those of the clean-up included. It strikes again only after a second: what it
    # tears out of the inner `finally` is done by the outer one, so that no alarm is ever left on. (A context manager would have
    # a gap before its `__exit__`.)
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
