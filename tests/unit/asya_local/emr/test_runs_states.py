"""The states of a job run and their transitions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya_local.emr.capacity import Resources, Size
from asya_local.emr.runs import TERMINAL, IllegalTransitionError, JobRun, RunState, may_transition, new_run_id

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def make_run() -> JobRun:
    request = {
        "executionRoleArn": "arn:aws:iam::000000000000:role/job",
        "jobDriver": {"sparkSubmit": {"entryPoint": "s3://b/e.py"}},
    }
    size = Size(Resources(1, 2, 20), Resources(1, 2, 20), 1)
    return JobRun("00run", "00app", "arn", "emr-spark-8.1.0", "caller", BEGIN, request, {}, size, executors=1)


def test_a_run_succeeds_and_its_durations_are_measured() -> None:
    run = make_run()
    steps = [RunState.QUEUED, RunState.PENDING, RunState.SCHEDULED, RunState.RUNNING, RunState.SUCCESS]

    for seconds, state in enumerate(steps, start=1):
        change = run.transition(state, BEGIN + timedelta(seconds=seconds), f"now {state}")

    assert (change.previous, change.state) == (RunState.RUNNING, RunState.SUCCESS)
    description = run.description(BEGIN + timedelta(hours=1))
    assert description["state"] == "SUCCESS"
    assert description["queuedDurationMilliseconds"] == 1000
    assert description["totalExecutionDurationSeconds"] == 1
    assert description["totalResourceUtilization"]["vCPUHour"] == pytest.approx(2 / 3600, abs=1e-6)
    assert description["billedResourceUtilization"]["vCPUHour"] == pytest.approx(2 * 60 / 3600, abs=1e-6)


def test_a_terminal_run_has_no_transition() -> None:
    run = make_run()
    run.transition(RunState.FAILED, BEGIN, "x" * 1000)

    assert len(run.details) == 256
    for state in RunState:
        with pytest.raises(IllegalTransitionError):
            run.transition(state, BEGIN, "")


@given(st.lists(st.sampled_from(RunState)))
def test_no_transition_leaves_a_terminal_state_or_returns_to_the_first(states: list[RunState]) -> None:
    current, is_terminal = RunState.SUBMITTED, False
    for state in states:
        if may_transition(current, state):
            assert not is_terminal
            assert state is not RunState.SUBMITTED
            current, is_terminal = state, state in TERMINAL


def test_ids_match_the_service_model() -> None:
    ids = {new_run_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(each) == 16 and each.isalnum() and each == each.lower() for each in ids)
