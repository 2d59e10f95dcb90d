from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya_local.emr.capacity import Size
from asya_local.emr.runs import IllegalTransitionError, JobRun, new_run_id
from asya_local.emr.states import TERMINAL, RunState, may_transition

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def make_run() -> JobRun:
    request = {
        "executionRoleArn": "arn:aws:iam::000000000000:role/job",
        "jobDriver": {"sparkSubmit": {"entryPoint": "s3://b/e.py"}},
    }
    return JobRun("00run", "00app", "arn", "emr-spark-8.1.0", "someone", BEGIN, request, {}, Size(2, 4, 40))


def test_the_ordinary_way() -> None:
    run = make_run()
    steps = [RunState.QUEUED, RunState.PENDING, RunState.SCHEDULED, RunState.RUNNING, RunState.SUCCESS]

    for seconds, state in enumerate(steps, start=1):
        change = run.transition(state, BEGIN + timedelta(seconds=seconds), f"now {state}")

    assert (change.previous, change.state) == (RunState.RUNNING, RunState.SUCCESS)
    shown = run.description(BEGIN + timedelta(hours=1))
    assert shown["state"] == "SUCCESS"
    assert shown["queuedDurationMilliseconds"] == 1000
    assert shown["totalExecutionDurationSeconds"] == 1
    assert shown["totalResourceUtilization"]["vCPUHour"] == pytest.approx(2 / 3600, abs=1e-6)
    assert shown["billedResourceUtilization"]["vCPUHour"] == pytest.approx(2 * 60 / 3600, abs=1e-6)


def test_a_run_that_is_over_stays_over() -> None:
    run = make_run()
    run.transition(RunState.FAILED, BEGIN, "x" * 1000)

    assert len(run.details) == 256
    for state in RunState:
        with pytest.raises(IllegalTransitionError):
            run.transition(state, BEGIN, "")


@given(st.lists(st.sampled_from(RunState)))
def test_no_way_leads_out_of_an_end_or_back_to_the_start(states: list[RunState]) -> None:
    current, over = RunState.SUBMITTED, False
    for state in states:
        if may_transition(current, state):
            assert not over
            assert state is not RunState.SUBMITTED
            current, over = state, state in TERMINAL


def test_ids_are_what_the_service_model_allows() -> None:
    ids = {new_run_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(one) == 16 and one.isalnum() and one == one.lower() for one in ids)
