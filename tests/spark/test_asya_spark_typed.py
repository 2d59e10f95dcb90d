"""protocol §6, typed jobs: a function of payloads is held to its annotations, as a handler is."""

import pytest

from tests.spark.job_run import Run

pytestmark = pytest.mark.spark

SALE = {"day": "2026-11-24", "prices": ["1.20", "2.30"], "other": 1}
JOBS = "tests.spark.typed_jobs"


@pytest.mark.rule("6.typed", "6.contract")
def test_a_payload_that_does_not_fit_fails_alone(spark, tmp_path):
    done = Run(spark, tmp_path, [SALE, {"day": "today", "prices": []}, SALE], job=f"{JOBS}.totals")

    assert [done.heads[i].end for i in range(3)] == ["done", "failed", "done"]
    assert done.payloads(0) == done.payloads(2) == [{"day": "2026-11-24", "total": "3.50"}]
    error = done.heads[1].error
    assert (error.type, error.mro) == ("ContractError", ("ValueError", "Exception"))
    assert error.message == "payload.day: should be a date, such as '2026-11-24'; got 'today'"


@pytest.mark.rule("10.as-a-handler")
def test_a_job_that_no_payload_can_call_fails_the_run(spark, tmp_path):
    done = Run(spark, tmp_path, [SALE], job=f"{JOBS}.two")

    assert "must take one argument, the payload" in done.commit.error.message
