"""A result that the mesh could not read is refused before it is written (`protocol §10.result-size`)."""

import pytest

from asya.protocol import text
from asya_spark import attempt
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark
LIMIT = 1000
FITS = LIMIT - len('{"payload":""}')


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    assert attempt.RESULT_LINE_LIMIT == text.RESULT_LINE_LIMIT
    monkeypatch.setattr(attempt, "RESULT_LINE_LIMIT", LIMIT)


@pytest.mark.rule("10.result-size")
def test_10_a_frame_that_is_too_large_fails_its_envelope(spark, tmp_path):
    run = Run(spark, tmp_path, [{"sizes": [FITS]}, {"sizes": [1, FITS + 1]}, {"sizes": [2]}], job="large")

    assert [head.end for head in run.heads.values()] == ["done", "failed", "done"]
    assert run.heads[1].error.type == "ResultTooLarge"
    assert run.heads[1].error.message.startswith("frame 1 of the result has ")
    assert [len(frames) for frames in run.frames.values()] == [1, 1, 1], "the frame before it counts"


@pytest.mark.rule("10.result-size")
def test_10_a_row_that_is_too_large_fails_its_envelope(spark, tmp_path):
    run = Run(spark, tmp_path, [{"size": 5}, {"size": LIMIT}], job="large_rows", shape="dataframe")

    assert [head.end for head in run.heads.values()] == ["done", "failed"]
    assert run.heads[1].error.type == "ResultTooLarge"


@pytest.mark.rule("10.result-size")
@pytest.mark.parametrize("most", [1, 7])
def test_10_a_call_ends_at_the_first_child_too_many(spark, tmp_path, most):
    run = Run(spark, tmp_path, [{}], job="endless", max_children=most)

    # Frame 0 is no child. One child too many is enough for the completion to refuse them all.
    assert run.heads[0].frames == most + 2
