"""protocol §5.7, §5.11: the time limit interrupts user code, and the process stays usable."""

import signal
import threading
import time
from collections.abc import Callable

import pytest

from asya.runtime.time_limit import TimeBudget, TimeLimitReached, run_within

FOREVER = 600.0
"""Seconds; code that takes so long ends only by its time limit."""


def busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def alarm_is_off() -> bool:
    return signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0) and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_code_within_its_time_limit_returns_its_value() -> None:
    assert run_within(FOREVER, lambda: "value") == "value"
    assert alarm_is_off()


@pytest.mark.parametrize("blocking", [busy, time.sleep, threading.Event().wait], ids=["loop", "sleep", "lock"])
def test_code_beyond_its_time_limit_is_interrupted(blocking: Callable[[float], object]) -> None:
    with pytest.raises(TimeLimitReached):
        run_within(0.05, lambda: blocking(FOREVER))
    assert alarm_is_off()


def test_an_error_passes_and_the_alarm_is_off() -> None:
    with pytest.raises(ZeroDivisionError):
        run_within(FOREVER, lambda: 1 / 0)
    assert alarm_is_off()


def test_a_negative_limit_interrupts_at_once() -> None:
    with pytest.raises(TimeLimitReached):
        run_within(0.0, lambda: busy(FOREVER))
    assert alarm_is_off()


def test_an_alarm_at_the_very_end_never_stays_on() -> None:
    """The limit moves over the end of the call in small steps, so the alarm interrupts every part of the clean-up."""
    outcomes: set[str] = set()
    for step in range(400):
        try:
            run_within(0.000_1 + step * 0.000_001, lambda: busy(0.000_3))
            outcomes.add("done")
        except TimeLimitReached:
            outcomes.add("interrupted")
        assert alarm_is_off()
    assert outcomes == {"done", "interrupted"}


def test_code_that_catches_the_first_interruption_is_interrupted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.runtime.time_limit.REPEAT_SECONDS", 0.02)
    swallowed = []

    def stubborn() -> None:
        for _ in range(3):
            try:
                busy(FOREVER)
            except BaseException as error:  # noqa: BLE001 - the handler that this rule is for
                swallowed.append(error)
        busy(FOREVER)

    with pytest.raises(TimeLimitReached):
        run_within(0.02, stubborn)
    assert len(swallowed) == 3
    assert alarm_is_off()


def test_outside_the_main_thread_the_code_just_runs() -> None:
    results: list[str] = []

    def slow() -> str:
        busy(0.03)
        return "done"

    thread = threading.Thread(target=lambda: results.append(run_within(0.01, slow)))
    thread.start()
    thread.join()
    assert results == ["done"]


def test_a_time_budget_never_goes_below_zero() -> None:
    assert TimeBudget(-5.0).remaining == 0.0
    assert 0.0 < TimeBudget(FOREVER).remaining <= FOREVER
