"""protocol §6 and §10.dataframe, typed jobs: payloads are held to annotations, and those of a DataFrame to their declaration."""

import pytest

from tests.spark import typed_jobs
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


# --- DataFrame jobs ------------------------------------------------------------------------------------------------------

DELIVERY = {
    "sale": SALE,
    "at": "2026-11-24T10:30:00.123456+02:00",
    "seal": "/wA=",
    "weights": {"net": "0.000000000000000001", "gross": "12345678901234567890.10"},
}


def dataframe(spark, folder, payloads, job, declared, **changes):
    return Run(spark, folder, payloads, job=f"{JOBS}.{job}", shape="dataframe", payload_schema=declared, **changes)


@pytest.fixture
def calls():
    """The number of envelopes in each call of `sums`."""
    typed_jobs.SUMMED.clear()
    return typed_jobs.SUMMED


@pytest.mark.rule("10.dataframe.unfit")
def test_rows_that_do_not_fit_fail_alone_and_the_job_is_called_once_with_the_others(spark, tmp_path, calls):
    bad = [{**DELIVERY, "seal": "???"}, None, {**DELIVERY, "sale": {**SALE, "prices": ["1", "much"]}}]

    done = dataframe(spark, tmp_path, [bad[0], DELIVERY, bad[1], DELIVERY, bad[2]], "sums", f"{JOBS}.Delivery")

    assert calls == [2]
    assert [done.heads[index].end for index in range(5)] == ["failed", "done", "failed", "done", "failed"]
    assert list(done.heads) == [0, 1, 2, 3, 4]
    errors = [done.heads[index].error for index in (0, 2, 4)]
    assert {(error.type, error.mro) for error in errors} == {("ContractError", ("ValueError", "Exception"))}
    assert [error.message.partition(":")[0] for error in errors] == [
        "payload.seal",
        "payload",
        "payload.sale.prices[1]",
    ]
    assert done.commit.error is None


@pytest.mark.rule("10.dataframe.types", "10.dataframe.result")
def test_columns_have_the_types_of_the_model_and_results_the_forms_of_the_protocol(spark, tmp_path):
    done = dataframe(spark, tmp_path, [DELIVERY], "sums", f"{JOBS}.Delivery")

    assert done.payloads(0) == [
        {
            "sale": {"day": "2026-11-24", "prices": ["1.2", "2.3"]},
            "at": "2026-11-24T08:30:00.123456Z",
            "seal": "/wA=",
            "weights": {"net": "0.000000000000000001", "gross": "12345678901234567890.1"},
            "note": None,
            "total": "3.5",
        }
    ]


@pytest.mark.rule("10.dataframe.unfit")
def test_the_job_is_not_called_if_no_payload_fits(spark, tmp_path, calls):
    done = dataframe(spark, tmp_path, [{}, {"sale": 1}], "sums", f"{JOBS}.Delivery")

    assert calls == []
    assert [head.error.message for head in done.heads.values()] == [
        "payload.sale: missing",
        "payload.sale: should be an object (Sale); got 1",
    ]


@pytest.mark.rule("10.dataframe.unfit")
def test_an_error_of_the_model_itself_fails_its_row_alone(spark, tmp_path, calls):
    done = dataframe(spark, tmp_path, [{**DELIVERY, "note": ""}], "sums", f"{JOBS}.Delivery")

    assert (calls, done.heads[0].end, done.heads[0].error.type) == ([], "failed", "KeyError")


@pytest.mark.rule("10.dataframe.unfit", "10.dataframe.one-bad")
def test_a_row_that_does_not_fit_is_no_failed_call(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.dataframe_job.FAILED_CALL_LIMIT", 2)
    payloads = [{"n": "x"}, {"n": 1}, {"n": "y"}, {"n": 2}, {"n": "z"}]

    done = Run(spark, tmp_path, payloads, job="typed", shape="dataframe", payload_schema="n INT NOT NULL")

    assert [done.heads[index].end for index in range(5)] == ["failed", "done", "failed", "done", "failed"]
    assert done.heads[0].error.message == "payload.n: should be a whole number; got 'x'"


@pytest.mark.rule("10.dataframe.result")
@pytest.mark.parametrize(
    ("declared", "total", "at"),
    [
        (f"{JOBS}.COUNT", "12.3", "2026-11-24T08:30:00.123456Z"),
        (None, 12.3, "2026-11-24T17:30:00.123+09:00"),
    ],
)
def test_results_of_jobs_without_a_declaration_are_those_of_to_json(spark, tmp_path, declared, total, at):
    done = dataframe(spark, tmp_path, [{"n": 1}], "literal", declared)

    assert done.payloads(0) == [{"total": total, "at": at, "day": "2026-11-24", "raw": "/wA="}]


@pytest.mark.rule("10.dataframe.declaration")
@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (f"{JOBS}.Ambiguous", "payload.price: a union of 2 types has no Spark type"),
        ("n NUMBR", "cannot be read: ParseException"),
    ],
)
def test_a_declaration_that_cannot_be_used_fails_the_run_at_its_start(spark, tmp_path, declared, message, calls):
    done = dataframe(spark, tmp_path, [DELIVERY], "sums", declared)

    assert message in done.commit.error.message
    assert (calls, done.heads) == ([], {})
