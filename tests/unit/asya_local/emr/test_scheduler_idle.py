"""A run is idle if its driver uses hardly any CPU for a few seconds."""

from __future__ import annotations

import pytest

from asya_local.emr.scheduler import WINDOW, CpuSample, IdleRuns, is_idle, recent


def observed(*used: float) -> IdleRuns:
    """Return the watch after one sample a second of a run."""
    runs = IdleRuns()
    for second, seconds in enumerate(used):
        runs.observe(float(second), {"run": seconds})
    return runs


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param([10.0, 10.1, 10.2, 10.3], True, id="polls"),
        pytest.param([10.0, 11.0, 12.0, 13.0], False, id="works"),
        pytest.param([10.0, 10.0, 10.0], False, id="watched too shortly"),
        pytest.param([10.0, 10.5, 10.5, 10.5], True, id="a short burst"),
        pytest.param([10.0, 10.0, 10.0, 10.0, 10.5], False, id="works again"),
        pytest.param([10.0, 12.0, 12.0, 12.0], False, id="has just worked"),
        pytest.param([10.0, 12.0, 12.0, 12.0, 12.0], True, id="worked before the window"),
    ],
)
def test_a_run_is_idle_after_seconds_without_work(used: list[float], expected: bool) -> None:
    assert observed(*used).is_idle("run") is expected


def test_a_run_without_samples_is_at_work() -> None:
    """A run is not idle while it fetches or uploads data, which its driver does not do."""
    runs = observed(10.0, 10.0, 10.0, 10.0)
    assert not runs.is_idle("other")
    runs.observe(4.0, {})
    assert not runs.is_idle("run")
    runs.observe(5.0, {"run": 10.0})
    assert not runs.is_idle("run")


def test_samples_before_the_window_are_forgotten() -> None:
    samples = tuple(CpuSample(at * 0.5, 0.0) for at in range(20))
    kept = recent(samples)
    assert kept[-1].at - kept[0].at == WINDOW
    assert is_idle(kept)
    assert not is_idle(())
