"""Numbers of JSON in jobs: with all their digits where a type has decimals, and never NaN (`protocol §1`, `§10.dataframe`)."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya_spark.strict_json import NotJsonError, check_text
from tests.doubles.json_numbers import NUMBERS, are_equal
from tests.spark.job_run import Run, member

pytestmark = pytest.mark.spark

JOBS = "tests.spark.typed_jobs"
LONG = "12345678901234567.89"


def member_of(index, payload):
    """A member with a payload as its text."""
    made = member(index, None)
    envelope = bytes(made.envelope).replace(b'"payload": null', b'"payload": ' + payload.encode())
    return member(index, None, envelope=type(made.envelope)(envelope))


def runs_of(spark, folder, payloads, job, **changes):
    return Run(spark, folder, [member_of(i, each) for i, each in enumerate(payloads)], job=f"{JOBS}.{job}", **changes)


def texts(done, index):
    return [bytes(frame.payload).decode() for frame in done.frames[index]]


@pytest.mark.rule("1.numbers")
@given(st.lists(NUMBERS, min_size=20, max_size=20))
@settings(max_examples=2, deadline=None)
def test_1_a_decimal_of_a_payload_job_has_every_digit(spark, tmp_path_factory, numbers):
    given_payloads = [f'{{"total": {text}, "rest": [{text}]}}' for text in numbers]
    done = runs_of(spark, tmp_path_factory.mktemp("run"), given_payloads, "bill")

    seen = [done.payloads(index)[0] for index in range(len(numbers))]
    assert [each["is_float"] for each in seen] == ["True"] * len(numbers)
    assert [text for each, text in zip(seen, numbers, strict=True) if not are_equal(each["total"], text)] == []


@pytest.mark.rule("1.numbers.passed")
def test_1_a_number_that_an_untyped_job_passes_on_keeps_its_digits(spark, tmp_path):
    done = runs_of(spark, tmp_path, [f'{{"total": {LONG}, "price": 1.10}}'], "passed")

    assert texts(done, 0) == [f'{{"total":{LONG},"price":1.10,"is_float":true}}']


@pytest.mark.rule("1.numbers", "10.dataframe.types")
@given(st.lists(st.decimals("-9e18", "9e18", places=19), min_size=20, max_size=20))
@settings(max_examples=2, deadline=None)
def test_1_a_decimal_column_has_every_digit(spark, tmp_path_factory, decimals):
    numbers = [f"{each:f}" for each in decimals]
    schema = "total DECIMAL(38,19), text STRING, rest DOUBLE"
    given_payloads = [f'{{"total": {text}, "text": [{text}], "rest": {text}}}' for text in numbers]
    done = runs_of(
        spark, tmp_path_factory.mktemp("run"), given_payloads, "same", shape="dataframe", payload_schema=schema
    )

    seen = [done.payloads(index)[0] for index in range(len(numbers))]
    assert [Decimal(each["total"]) for each in seen] == decimals
    assert [each["text"] for each in seen] == [f"[{text}]" for text in numbers]
    assert [each["rest"] for each in seen] == [float(text) for text in numbers]


@pytest.mark.rule("1.numbers", "10.dataframe.result")
def test_1_json_text_of_a_dataframe_keeps_its_digits_both_ways(spark, tmp_path):
    payload = f'{{"total": {LONG}, "price": [1.10]}}'
    done = runs_of(spark, tmp_path / "same", [payload], "same", shape="dataframe")
    assert texts(done, 0) == [payload.replace(" ", "")]

    done = runs_of(
        spark,
        tmp_path / "decimals",
        ['{"total": 1234567890123456789.0123456789012345678}'],
        "as_decimals",
        shape="dataframe",
    )
    assert texts(done, 0) == ['{"total":1234567890123456789.0123456789012345678}']


@pytest.mark.rule("10.dataframe.no-number", "1.strict-json")
def test_10_a_float_of_a_row_that_is_no_number_fails_its_envelope_with_row_and_field(spark, tmp_path):
    places = {"n": "$.n", "s": "$.s.m", "a": "$.a[1].x", "d": "$.d.k[2]"}
    bad = ["NaN", "Infinity", "-Infinity"]
    cases = [(place, each) for place in places for each in bad]
    payloads = [json.dumps({"place": place, "bad": each}) for place, each in cases] + ['{"place": "nowhere"}']

    done = runs_of(spark, tmp_path, payloads, "no_numbers", shape="dataframe")

    for index, (place, each) in enumerate(cases):
        error = done.heads[index].error
        assert (done.heads[index].end, error.type) == ("failed", "processing_error")
        assert error.message.startswith(
            f"the payload of row 1 is not JSON: {places[place]}: {each} has no form in JSON"
        )
    assert done.heads[len(cases)].end == "done"
    assert [each["t"] for each in done.payloads(len(cases))] == [None, "NaN"]


@pytest.mark.rule("10.dataframe.no-number")
@pytest.mark.parametrize(("text", "place"), [('{"a": [NaN]}', "$.a[0]: nan"), ('{"b": 1e400}', "$.b: 1e400")])
def test_10_so_does_json_text_with_such_a_number(text, place):
    with pytest.raises(NotJsonError) as refused:
        check_text(text)
    assert str(refused.value).startswith(place)
