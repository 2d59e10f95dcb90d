"""Reads the `payload_schema` of an actor: a DDL text, or the name of a model or a Spark type (`protocol §10.dataframe`)."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import DataType, StringType, StructType

from asya.contracts.annotations import codec_of
from asya.contracts.spark_types import NoSparkTypeError, is_name, spark_type
from asya.protocol.numbers import json_text
from asya_spark.columns.values import loader

_PAYLOAD = "payload"


class PayloadSchemaError(ValueError):
    """The declared type of a payload cannot be used; the message says which one and why."""


@dataclass(frozen=True)
class PayloadColumn:
    """The column of payloads.

    Attributes:
        kind: its Spark type.
        value: makes the value for Spark of a payload; a `ContractError` names the field that does not fit.
        is_declared: whether the actor has a `payload_schema`.
    """

    kind: DataType
    value: Callable[[Any], Any]
    is_declared: bool = True


UNDECLARED = PayloadColumn(StringType(), json_text, is_declared=False)


def payload_column(declared: str | None) -> PayloadColumn:
    """The column for the `payload_schema` of an actor; JSON text without one.

    Raises:
        PayloadSchemaError: the text is no DDL, the name cannot be imported, or a field has no Spark type.
    """
    if not declared:
        return UNDECLARED
    try:
        if not is_name(declared):
            return _of_type(DataType.fromDDL(declared))
        value = pkgutil.resolve_name(declared)
        return _of_type(value) if isinstance(value, DataType) else _of_model(value)
    except NoSparkTypeError as error:
        raise PayloadSchemaError(f"payload_schema {declared!r}: {error}") from None
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise PayloadSchemaError(
            f"payload_schema {declared!r} cannot be read: {type(error).__name__}: {reason}; give a DDL text such as "
            "'id STRING, total DECIMAL(12,2)', or the name of a model or StructType in the jobs folder"
        ) from error


def _of_type(kind: DataType) -> PayloadColumn:
    load = loader(kind)
    return PayloadColumn(kind, lambda payload: load(payload, _PAYLOAD))


def _of_model(model: Any) -> PayloadColumn:
    field = {"name": _PAYLOAD, "type": spark_type(model), "nullable": True, "metadata": {}}
    kind = StructType.fromJson({"type": "struct", "fields": [field]})[_PAYLOAD].dataType
    codec, load = codec_of(model), loader(kind)

    def value(payload: Any) -> Any:
        # The model validates, and its JSON form has the defaults and what its validators change.
        return load(codec.dump(codec.load(payload, _PAYLOAD), _PAYLOAD), _PAYLOAD)

    return PayloadColumn(kind, value)
