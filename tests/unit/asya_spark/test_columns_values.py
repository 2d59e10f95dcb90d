"""protocol §10.dataframe.types: JSON values become the values of a Spark type, or do not fit."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name in Spark code

from asya.contracts.errors import ContractError
from asya.contracts.spark_types import NoSparkTypeError
from asya_spark.columns import loader

MONEY = T.DecimalType(38, 18)
AT_EIGHT = datetime.datetime(2026, 11, 24, 8, 30, tzinfo=datetime.UTC)
ORDER = (
    T.StructType()
    .add("id", T.StringType(), nullable=False)
    .add("lines", T.ArrayType(T.StructType().add("price", MONEY), containsNull=False))
)

ACCEPTED: list[tuple[T.DataType, Any, Any]] = [
    (T.IntegerType(), -(2**31), -(2**31)),
    (T.LongType(), 2**63 - 1, 2**63 - 1),
    (T.LongType(), 1.0, 1),
    (T.DoubleType(), 5, 5.0),
    (T.FloatType(), 0.5, 0.5),
    (T.BooleanType(), True, True),
    (T.StringType(), "5", "5"),
    (T.StringType(), 5, "5"),
    (T.StringType(), {"a": [1, None]}, '{"a":[1,null]}'),
    (MONEY, "12.30", Decimal("12.30")),
    (MONEY, 0.1, Decimal("0.1")),
    (MONEY, "1e3", Decimal("1E+3")),
    (MONEY, "99999999999999999999.999999999999999999", Decimal("99999999999999999999.999999999999999999")),
    (MONEY, "-0E-400", Decimal()),
    (T.DecimalType(4, 2), "12.30000", Decimal("12.30000")),
    (T.DateType(), "2026-11-24", datetime.date(2026, 11, 24)),
    (T.TimestampType(), "2026-11-24T08:30:00Z", AT_EIGHT),
    (T.TimestampType(), "2026-11-24T10:30:00+02:00", AT_EIGHT),
    (T.TimestampType(), "2026-11-24T08:30:00", AT_EIGHT),
    (T.TimestampNTZType(), "2026-11-24T08:30:00", AT_EIGHT.replace(tzinfo=None)),
    (T.BinaryType(), "/wA=", b"\xff\x00"),
    (T.ArrayType(T.IntegerType()), [1, None], [1, None]),
    (T.MapType(T.StringType(), T.DateType()), {"a": "2026-11-24"}, {"a": datetime.date(2026, 11, 24)}),
    (ORDER, {"id": "7", "lines": [{"price": "1.20"}, {}], "other": 1}, ("7", [(Decimal("1.20"),), (None,)])),
    (ORDER, {"id": "7"}, ("7", None)),
]

REFUSED: list[tuple[T.DataType, Any, str]] = [
    (T.IntegerType(), 2**31, r"a whole number of 32 bits \(int\); got 2147483648"),
    (T.LongType(), 2**63, r"a whole number of 64 bits \(bigint\)"),
    (T.LongType(), 1.5, "a whole number; got 1.5"),
    (T.LongType(), "5", "a whole number; got '5'"),
    (T.LongType(), True, "a whole number; got true"),
    (T.DoubleType(), "5", "a number; got '5'"),
    (T.DoubleType(), float("inf"), "a number that a double can hold"),
    (T.DoubleType(), 10**400, "a number that a double can hold"),
    (T.FloatType(), 1e300, "a number that a float can hold"),
    (T.BooleanType(), 1, "true or false"),
    (T.StringType(), None, "a string; got null"),
    (MONEY, "much", "a decimal number as a string"),
    (MONEY, "100000000000000000000", "a decimal with at most 20 digits before the point and 18 after it"),
    (MONEY, "0.0000000000000000001", "at most 20 digits before the point and 18 after it"),
    (MONEY, "1e400", "at most 20 digits before"),
    (T.DecimalType(4, 2), "12.345", "at most 2 digits before the point and 2 after it; got '12.345'"),
    (T.DateType(), "2026-11-24T08:30:00Z", "a date, such as"),
    (T.DateType(), "2026-1-2", "a date, such as"),
    (T.DateType(), 20261124, "a date, such as"),
    (T.TimestampType(), 5, "a time, such as"),
    (T.TimestampType(), "0001-01-01T00:00:00+02:00", "between the years 1 and 9999"),
    (T.TimestampNTZType(), "2026-11-24T08:30:00Z", "a time without an offset"),
    (T.BinaryType(), "???", "bytes in base64"),
    (T.ArrayType(T.IntegerType()), {}, "an array; got an object"),
    (T.MapType(T.StringType(), T.IntegerType()), [], "an object; got an array"),
    (ORDER, None, "an object; got null"),
]


@pytest.mark.rule("10.dataframe.types")
@pytest.mark.parametrize(("kind", "value", "loaded"), ACCEPTED, ids=repr)
def test_values_of_json_become_values_of_spark(kind: T.DataType, value: Any, loaded: Any) -> None:
    assert loader(kind)(value, "payload") == loaded


@pytest.mark.rule("10.dataframe.types")
@pytest.mark.parametrize(("kind", "value", "message"), REFUSED, ids=repr)
def test_a_value_that_does_not_fit_is_refused(kind: T.DataType, value: Any, message: str) -> None:
    with pytest.raises(ContractError, match=rf"^payload: should be (.* )?{message}"):
        loader(kind)(value, "payload")


@pytest.mark.rule("10.dataframe.unfit")
@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({}, r"payload\.id: missing"),
        ({"id": None}, r"payload\.id: should be a string; got null"),
        ({"id": "7", "lines": [{"price": "1"}, {"price": "x"}]}, r"payload\.lines\[1\]\.price: should be a decimal"),
        ({"id": "7", "lines": [None]}, r"payload\.lines\[0\]: should be an object; got null"),
    ],
)
def test_an_error_names_the_field(payload: Any, message: str) -> None:
    with pytest.raises(ContractError, match=f"^{message}"):
        loader(ORDER)(payload, "payload")


@pytest.mark.rule("10.dataframe.declaration")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (T.StructType().add("waits", T.DayTimeIntervalType()), r"payload\.waits: no JSON value has the Spark type interval"),
        (T.ArrayType(T.NullType()), r"payload\[\]: no JSON value has the Spark type void"),
        (T.MapType(T.DateType(), T.StringType()), r"payload: the keys of JSON objects are strings"),
    ],
)  # fmt: skip
def test_a_spark_type_without_values_names_its_field(kind: T.DataType, message: str) -> None:
    with pytest.raises(NoSparkTypeError, match=f"^{message}"):
        loader(kind)
