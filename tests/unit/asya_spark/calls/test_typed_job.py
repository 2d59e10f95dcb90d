"""protocol §6, typed jobs: what reaches a job function, and what leaves it, without a Spark session."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from asya.contracts.errors import ContractError
from asya.contracts.signature import SignatureError
from asya_spark.calls.evaluate import frames
from asya_spark.calls.typed_job import typed_job
from asya_spark.manifest import Envelope
from tests.spark import typed_jobs

SALE = {"day": "2026-11-24", "prices": ["1.20", "2.30"]}


def outputs(job: Callable[..., Any], payload: Any) -> list[Any]:
    envelope = Envelope("env-1", "", ("prep",), "sum", ("post",), {}, {}, payload)
    typed = typed_job(job)
    lines = frames(lambda: typed.call(None, payload), envelope, give=typed.give)
    return [json.loads(line).get("payload") for line in lines]


@pytest.mark.rule("6.typed", "6.typed.result")
def test_a_job_gets_and_gives_its_types() -> None:
    assert outputs(typed_jobs.totals, SALE) == [{"day": "2026-11-24", "total": "3.50"}]


@pytest.mark.rule("6.typed.keys")
def test_the_parameters_after_the_session_are_keys() -> None:
    assert outputs(typed_jobs.by_keys, SALE) == [{"day": "2026-11-24", "total": "7.00"}]


@pytest.mark.rule("6.typed.frames")
def test_each_yielded_value_has_the_type_and_a_fan_out_its_own() -> None:
    totals = [{"day": "2026-11-24", "total": price} for price in ("1.20", "2.30")]
    assert outputs(typed_jobs.generator, SALE) == totals
    assert outputs(typed_jobs.splits, SALE) == [None, SALE, "2026-11-24"]


@pytest.mark.rule("6.contract")
def test_a_result_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ContractError, match=r"^result\.total: missing$"):
        outputs(typed_jobs.wrong, SALE)


@pytest.mark.rule("6.typed.untyped")
def test_a_job_without_annotations_is_called_as_it_is() -> None:
    def job(spark, payload):  # type: ignore[no-untyped-def]
        return payload

    assert typed_job(job).call is job
    assert typed_job(job).give is None


def test_a_job_that_no_payload_can_call_is_refused_if_it_is_typed() -> None:
    def job(spark: Any) -> None:
        pass

    with pytest.raises(SignatureError):
        typed_job(job)
