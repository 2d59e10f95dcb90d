"""The JSON Schema of Spark types, by which the routes to DataFrame jobs are checked."""

from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name in Spark code

from asya.contracts import forms
from asya_infra.contracts.read import json_schema

DECIMAL = {"type": ["string", "number"], **forms.DECIMAL.schema()}


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (T.IntegerType(), {"type": "integer"}),
        (T.DoubleType(), {"type": "number"}),
        (T.DecimalType(12, 2), DECIMAL),
        (T.TimestampType(), {"type": "string", **forms.DATE_TIME.schema()}),
        (T.StringType(), {}),
        (T.DayTimeIntervalType(), {}),
        (
            T.ArrayType(T.DateType(), containsNull=False),
            {"type": "array", "items": {"type": "string", **forms.DATE.schema()}},
        ),
        (T.MapType(T.StringType(), T.StringType()), {"type": "object", "additionalProperties": True}),
        (
            T.StructType().add("n", T.LongType(), nullable=False).add("total", T.DecimalType(12, 2)),
            {
                "type": "object",
                "properties": {"n": {"type": "integer"}, "total": {"anyOf": [DECIMAL, {"type": "null"}]}},
                "required": ["n"],
            },
        ),
    ],
    ids=repr,
)
def test_a_spark_type_has_the_schema_of_what_it_takes(kind: T.DataType, schema: dict[str, Any]) -> None:
    assert json_schema(kind.jsonValue()) == schema
