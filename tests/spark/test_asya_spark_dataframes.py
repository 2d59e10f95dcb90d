"""A DataFrame job: one call for the envelopes of a run (`protocol §10`)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.spark.job_run import Run, member

pytestmark = pytest.mark.spark


@pytest.mark.rule("10.dataframe")
def test_a_dataframe_of_envelopes(spark, tmp_path):
    done = Run(spark, tmp_path, [{"n": n} for n in range(1, 6)], job="double", shape="dataframe")

    assert done.payloads(0) == [{"doubled": 2, "ordinal": 0, "gap": None}]
    assert done.frames[1][0].next == ("elsewhere",)
    assert [payload["ordinal"] for payload in done.payloads(2)] == [0, 1]
    assert (done.heads[3].end, done.payloads(3)) == ("done", [])
    assert (done.heads[4].end, done.heads[4].error.message) == ("failed", "five is too much")


@pytest.mark.rule("10.dataframe")
def test_a_dataframe_with_a_declared_schema(spark, tmp_path):
    done = Run(spark, tmp_path, [{"n": 1}, {"n": 2}], job="typed", shape="dataframe", payload_schema="n INT")

    assert [done.payloads(0), done.payloads(1)] == [[{"n": 2}], [{"n": 3}]]


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        ("unknown_id", "'unknown', which is no envelope of this call"),
        ("broken", "no_such_column"),
        ("returns_int", "not int"),
    ],
)
def test_a_dataframe_job_that_fails_for_all(spark, tmp_path, job, problem):
    done = Run(spark, tmp_path, [{"n": 1}, {"n": 2}], job=job, shape="dataframe")

    assert [done.heads[index].end for index in range(2)] == ["failed"] * 2
    assert problem in done.heads[0].error.message
    assert done.commit.error is None


@pytest.mark.rule("10.dataframe.one-bad")
def test_10_one_bad_envelope_of_a_dataframe_fails_alone_with_its_own_error(spark, tmp_path):
    payloads = [{"n": n} for n in range(9)] + [{"n": "no number"}] + [{"n": n} for n in range(6)]

    done = Run(spark, tmp_path, payloads, job="strict", shape="dataframe", timeout=600.0, time_limit=15)

    assert [index for index in range(16) if done.heads[index].end != "done"] == [9]
    assert "no number" in done.heads[9].error.message
    assert [done.payloads(index)[0]["n"] for index in (0, 8, 15)] == [1, 9, 6]


@pytest.mark.rule("10.dataframe.one-bad")
def test_10_a_dataframe_job_that_always_fails_comes_to_an_end(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.dataframe_job.FAILED_CALL_LIMIT", 5)
    calls = tmp_path / "calls"

    done = Run(spark, tmp_path, [{"calls": str(calls)}] * 40, job="always_fails", shape="dataframe", timeout=600.0)

    assert {head.end for head in done.heads.values()} == {"failed"}
    assert len(done.heads) == 40
    assert len(calls.read_text()) <= 10


def test_10_a_dataframe_that_takes_too_long_times_out_for_all_its_envelopes(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.calls.time_limit.GRACE_SECONDS", 0.5)
    due = (datetime.now(UTC) + timedelta(minutes=5)).isoformat().replace("+00:00", "Z")

    done = Run(spark, tmp_path, [member(0, {"n": 1}), member(1, {"n": 2}, deadline_at=due)], job="sleeps",
               shape="dataframe", timeout=2.0)  # fmt: skip

    assert [(head.end, head.limit, head.by_deadline) for head in done.heads.values()] == [("timed_out", 2.0, False)] * 2
