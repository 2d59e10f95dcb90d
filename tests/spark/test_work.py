"""What Spark has measured of a call: shuffle, spill and skew, from a real Spark (`protocol §10.work`)."""

import pytest

from asya_spark.calls import work
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark


@pytest.mark.rule("10.work")
def test_10_each_result_has_the_stages_of_its_own_call(spark, tmp_path, monkeypatch):
    # Times are those of this machine, so every stage counts as skewed here.
    monkeypatch.setattr(work, "LONG_MILLISECONDS", 0.0)
    monkeypatch.setattr(work, "is_skewed", lambda *_: True)

    done = Run(spark, tmp_path, [{"do": "shuffle", "n": 1000}, {"do": "list", "n": 1}, {"do": "shuffle", "n": 5000}])

    first, without, last = (done.heads[index].work for index in range(3))
    assert without is None
    assert (first.stages, last.stages) == (2, 2)
    assert 0 < first.shuffle_read == first.shuffle_written == last.shuffle_read, "a hundred groups each"
    assert first.skew.tasks > 1
    assert 0 <= first.skew.median_ms <= first.skew.longest_ms
    assert done.commit.work is None


@pytest.mark.rule("10.work")
def test_10_a_dataframe_job_has_its_stages_in_the_commit(spark, tmp_path):
    done = Run(spark, tmp_path, [{"n": n} for n in range(1, 6)], job="double", shape="dataframe")

    assert done.commit.work.stages > 0
    assert done.commit.work.tasks >= done.commit.work.stages
    assert all(head.work is None for head in done.heads.values())


@pytest.mark.rule("10.work")
def test_10_a_spark_that_does_not_tell_changes_no_result(spark, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no status")

    monkeypatch.setattr(work, "summed", fail)

    done = Run(spark, tmp_path, [{"do": "count", "n": 5}])

    assert (done.heads[0].end, done.heads[0].work) == ("done", None)
