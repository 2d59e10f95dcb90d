"""protocol §13, clock: which steps run, in which order, and for how long."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.clock.steps import Step, StepsError, due_steps, named_steps, ordered, read_steps, share, written

START = datetime(2026, 11, 28, 12, tzinfo=UTC)
STEPS = tuple(
    Step(name, f"module.{name}", minutes, seconds)
    for name, minutes, seconds in (
        ("x-a", 1, 60.0),
        ("x-b", 1, 120.0),
        ("x-c", 5, 60.0),
        ("x-d", 1, 30.0),
    )
)
NAMES = [step.name for step in STEPS]


def names(steps: list[Step]) -> list[str]:
    return [step.name for step in steps]


def test_a_deployment_passes_the_steps_on() -> None:
    assert read_steps(written(STEPS)) == STEPS


@pytest.mark.rule("11.clock")
@given(st.lists(st.floats(min_value=-10, max_value=10), min_size=12, max_size=12))
def test_each_step_runs_as_often_as_declared_although_calls_are_not_exact(jitter: list[float]) -> None:
    started: dict[str, datetime] = {}
    runs: dict[str, list[int]] = {name: [] for name in NAMES}
    for minute, seconds in enumerate(jitter):
        now = START + timedelta(minutes=minute, seconds=seconds)
        for step in due_steps(STEPS, started, now):
            started[step.name] = now
            runs[step.name].append(minute)
    assert runs["x-a"] == runs["x-b"] == runs["x-d"] == list(range(12))
    assert runs["x-c"] == [0, 5, 10]


@pytest.mark.rule("11.clock")
def test_a_new_process_runs_all_steps() -> None:
    assert due_steps(STEPS, {}, START) == list(STEPS)


def test_an_event_may_name_steps() -> None:
    assert names(named_steps(STEPS, ["x-d", "x-a"])) == ["x-a", "x-d"]
    with pytest.raises(StepsError, match="the clock has no step 'x-e'; it has: x-a, x-b, x-c, x-d"):
        named_steps(STEPS, ["x-e"])


@pytest.mark.rule("11.clock.killed")
@given(st.lists(st.sampled_from([*NAMES, "x-gone"]), unique=True))
def test_steps_that_have_ended_a_process_run_last(fatal: list[str]) -> None:
    found = names(ordered(STEPS, fatal))
    known = [name for name in fatal if name in NAMES]
    assert found == [name for name in NAMES if name not in fatal] + known


@pytest.mark.rule("11.clock.killed")
@given(st.sets(st.sampled_from(NAMES)))
def test_whatever_steps_end_the_process_the_others_run_in_the_next_minute(killing: set[str]) -> None:
    """The first process of an environment does not know of any. Each later one runs all others."""
    fatal: list[str] = []
    for minute in range(6):
        ran = set()
        for step in ordered(STEPS, fatal):
            if step.name in killing:
                fatal = [*(name for name in fatal if name != step.name), step.name]
                break
            ran.add(step.name)
        known = set(fatal)
        if minute > len(killing):
            assert ran == set(NAMES) - killing
            assert known == killing if len(killing) < 2 else known <= killing


@pytest.mark.rule("11.clock.deadline")
@given(st.lists(st.floats(min_value=0, max_value=1), min_size=len(STEPS), max_size=len(STEPS)))
def test_a_step_has_its_seconds_if_those_before_keep_theirs(used: list[float]) -> None:
    remaining = sum(step.seconds for step in STEPS) + 10.0
    for number, step in enumerate(STEPS):
        seconds = share(step, STEPS[number + 1 :], remaining)
        assert seconds >= step.seconds
        remaining -= used[number] * seconds
    assert remaining > 0
