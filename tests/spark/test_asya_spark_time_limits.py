"""The time limits of an envelope and of its run (`protocol §10`)."""

from datetime import UTC, datetime, timedelta

import pytest

from asya_spark.calls.time_limit import Calls
from tests.spark.job_run import Run, member
from tests.spark.sample_jobs import FOREVER

pytestmark = pytest.mark.spark


@pytest.mark.rule("10.timeout.envelope")
@pytest.mark.parametrize("what", ["sleep", "spin", "long-spark"])
def test_a_time_limit_ends_one_envelope_and_the_next_one_is_well(spark, tmp_path, monkeypatch, what):
    """The first call exceeds both limits; if it did not end, or kept Spark busy, the second would not end."""
    monkeypatch.setattr("asya_spark.calls.time_limit.GRACE_SECONDS", 0.5)
    limits = []

    def first_is_short(calls, index, seconds, work, session, group):
        limits.append(seconds)
        return start(calls, index, 2.0 if len(limits) == 1 else seconds, work, session, group)

    start = Calls.start
    monkeypatch.setattr(Calls, "start", first_is_short)

    done = Run(spark, tmp_path, [{"do": what, "n": FOREVER}, {"do": "count", "n": 3}])

    assert (done.heads[0].end, done.heads[0].limit, done.heads[0].by_deadline) == ("timed_out", 600.0, False)
    assert done.payloads(1) == [{"rows": 3}]


@pytest.mark.rule("10.timeout.envelope")
def test_a_deadline_shortens_the_limit_and_a_passed_one_starts_nothing(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.calls.time_limit.GRACE_SECONDS", 0.5)
    now = datetime.now(UTC)
    soon, past = ((now + timedelta(seconds=s)).isoformat().replace("+00:00", "Z") for s in (2, -5))
    payload = {"do": "sleep", "n": FOREVER}

    done = Run(spark, tmp_path, [member(0, payload, deadline_at=soon), member(1, payload, deadline_at=past)])

    assert (done.heads[0].end, done.heads[0].by_deadline) == ("timed_out", True)
    assert done.heads[0].limit < 2
    assert (done.heads[1].end, done.heads[1].by_deadline, done.heads[1].limit) == ("timed_out", True, 0.0)


@pytest.mark.rule("10.timeout.rest")
def test_10_members_without_time_are_left_to_another_run(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.calls.time_limit.GRACE_SECONDS", 0.5)
    spark.range(3).count()

    done = Run(spark, tmp_path, [{"do": "none"}, {"do": "sleep", "n": FOREVER}, {"do": "none"}], time_limit=0.05)

    assert (done.commit.unreached, list(done.heads)) == (1, [0])
    assert done.commit.error is None


@pytest.mark.rule("10.timeout.rest")
def test_10_the_first_one_has_all_the_time_of_its_run(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.calls.time_limit.GRACE_SECONDS", 0.5)

    done = Run(spark, tmp_path, [{"do": "sleep", "n": FOREVER}, {"do": "none"}], time_limit=0.05)

    assert (done.heads[0].end, done.commit.unreached) == ("timed_out", 1)
