"""The `payload` column of DataFrame jobs: its declared type, its values, and the JSON of results.

The type is a DDL text, or the name of a model or a Spark type (`protocol §10.dataframe`).
A value that does not fit is a `ContractError`.
"""

import datetime
import decimal
import math
import pkgutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from asya.contracts.annotations import codec_of
from asya.contracts.errors import ContractError, mismatch
from asya.contracts.scalars import BOOLEAN, INTEGER, NUMBER, TEXTS, BytesCodec
from asya.contracts.spark_types import NoSparkTypeError, is_name, spark_type
from asya.protocol.numbers import json_text

Load = Callable[[Any, str], Any]
"""Makes the value of a JSON value and its path; raises a `ContractError`."""

_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


def loader(kind: DataType, path: str = "payload") -> Load:
    """What makes the values of a Spark type.

    Raises:
        NoSparkTypeError: payloads have no such values; the message names the field.
    """
    match kind:
        case StructType():
            return _struct(kind, path)
        case ArrayType():
            return _array(kind, path)
        case MapType():
            return _map(kind, path)
        case DecimalType():
            return _decimal(kind)
    if type(kind) in _BITS:
        return _whole(kind, _BITS[type(kind)])
    if type(kind) not in _SCALARS:
        raise NoSparkTypeError(f"{path}: no JSON value has the Spark type {kind.simpleString()}; declare another type")
    return _SCALARS[type(kind)]


def _struct(kind: StructType, path: str) -> Load:
    fields = [(field.name, field.nullable, loader(field.dataType, f"{path}.{field.name}")) for field in kind.fields]

    def load(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, dict):
            raise mismatch(path, "an object", value)
        loaded: list[Any] = []
        for name, nullable, load_field in fields:
            item = value.get(name)
            if item is None and nullable:
                loaded.append(None)
            elif item is None and name not in value:
                raise ContractError(f"{path}.{name}: missing")
            else:
                loaded.append(load_field(item, f"{path}.{name}"))
        return tuple(loaded)

    return load


def _array(kind: ArrayType, path: str) -> Load:
    load_item, has_nulls = loader(kind.elementType, f"{path}[]"), kind.containsNull

    def load(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise mismatch(path, "an array", value)
        return [
            None if item is None and has_nulls else load_item(item, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]

    return load


def _map(kind: MapType, path: str) -> Load:
    if not isinstance(kind.keyType, StringType):
        raise NoSparkTypeError(f"{path}: the keys of JSON objects are strings; declare MAP<STRING, …>")
    load_item, has_nulls = loader(kind.valueType, f"{path}.*"), kind.valueContainsNull

    def load(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise mismatch(path, "an object", value)
        return {
            key: None if item is None and has_nulls else load_item(item, f"{path}.{key}") for key, item in value.items()
        }

    return load


def _decimal(kind: DecimalType) -> Load:
    before, after = kind.precision - kind.scale, kind.scale
    title = f"a decimal with at most {before} digits before the point and {after} after it"

    def load(value: Any, path: str) -> decimal.Decimal:
        number: decimal.Decimal = TEXTS[decimal.Decimal].load(value, path)
        if not number:
            return decimal.Decimal()
        digits, exponent = number.as_tuple().digits, number.as_tuple().exponent
        zeros = next(index for index, digit in enumerate(reversed(digits)) if digit)
        # Spark would round the first, and fail the whole batch for the second.
        if not isinstance(exponent, int) or exponent + zeros < -after or number.adjusted() >= before:
            raise mismatch(path, title, value)
        return number

    return load


def _whole(kind: DataType, bits: int) -> Load:
    limit = 1 << (bits - 1)
    title = f"a whole number of {bits} bits ({kind.simpleString()})"

    def load(value: Any, path: str) -> int:
        number: int = INTEGER.load(value, path)
        if not -limit <= number < limit:
            raise mismatch(path, title, value)
        return number

    return load


def _number(value: Any, path: str) -> float:
    number: float = NUMBER.load(value, path)
    if not math.isfinite(number):
        raise mismatch(path, "a number that a double can hold", value)
    return number


def _single(value: Any, path: str) -> float:
    number = _number(value, path)
    try:
        struct.pack("<f", number)  # the native form gives infinity instead
    except OverflowError:
        raise mismatch(path, "a number that a float can hold", value) from None
    return number


def _text(value: Any, path: str) -> str:
    if value is None:
        raise mismatch(path, "a string", value)
    # As `from_json` does: a STRING may hold any part of a payload.
    return value if isinstance(value, str) else json_text(value, separators=(",", ":"), ensure_ascii=False)


def _timestamp(value: Any, path: str) -> datetime.datetime:
    time: datetime.datetime = TEXTS[datetime.datetime].load(value, path)
    if time.tzinfo is None:
        return time.replace(tzinfo=datetime.UTC)
    try:
        return time.astimezone(datetime.UTC)
    except OverflowError:
        raise mismatch(path, "a time between the years 1 and 9999 in UTC", value) from None


def _local_time(value: Any, path: str) -> datetime.datetime:
    time: datetime.datetime = TEXTS[datetime.datetime].load(value, path)
    if time.tzinfo is not None:
        raise mismatch(path, "a time without an offset, such as '2026-11-24T08:30:00'", value)
    return time


_SCALARS: dict[type[DataType], Load] = {
    StringType: _text,
    BooleanType: BOOLEAN.load,
    DoubleType: _number,
    FloatType: _single,
    DateType: TEXTS[datetime.date].load,
    TimestampType: _timestamp,
    TimestampNTZType: _local_time,
    BinaryType: BytesCodec().load,
}


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


# Without these, Spark drops the digits after milliseconds, and writes times in the time zone of the session.
_TIMES = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_TRAILING_ZEROS = r"\.0+$|(\.\d*[1-9])0+$"


def payload_text(column: Column, kind: DataType, *, is_declared: bool) -> Column:
    """The JSON text of the payloads of a DataFrame; a column of text is the JSON text itself.

    Args:
        column: the column.
        kind: its type.
        is_declared: whether the payloads of the job are declared. The results are then in the forms of the protocol, else in
            those of `to_json`.
    """
    if isinstance(kind, StringType):
        return column
    options = {"ignoreNullFields": "false", **(_TIMES if is_declared else {})}
    value = _with_text_decimals(column, kind) if is_declared else column
    # `to_json` takes structs alone, so it gets one: {"v":…}
    text = F.to_json(F.struct(value.alias("v")), options)
    return text.substr(F.lit(6), F.length(text) - 6)


def number_problem(column: Column, kind: DataType, path: Column | None = None) -> Column:
    """The first number of a payload that JSON has no form for, such as `$.stats[2].mean: NaN`; null without one.

    `to_json` would write it as a text.
    """
    found = _problem(column, kind, F.lit("$") if path is None else path)
    return F.lit(None).cast("string") if found is None else found


def _problem(column: Column, kind: DataType, path: Column) -> Column | None:
    """The same below a path; None if values of the type have no such number."""
    match kind:
        case DoubleType() | FloatType():
            is_none = F.isnan(column) | (F.abs(column) == F.lit(math.inf))
            return F.when(is_none, F.concat(path, F.lit(": "), column.cast("string")))
        case StructType():
            fields = [
                _problem(column[field.name], field.dataType, F.concat(path, F.lit(f".{field.name}"))) for field in kind
            ]
            found = [each for each in fields if each is not None]
            return F.coalesce(*found) if found else None
        case ArrayType() if _has_numbers(kind.elementType):

            def of_item(item: Column, index: Column) -> Column:
                place = F.concat(path, F.lit("["), index.cast("string"), F.lit("]"))
                return number_problem(item, kind.elementType, place)

            return _first(F.transform(column, of_item))
        case MapType() if _has_numbers(kind.valueType):

            def of_value(key: Column, item: Column) -> Column:
                return number_problem(item, kind.valueType, F.concat(path, F.lit("."), key.cast("string")))

            return _first(F.map_values(F.transform_values(column, of_value)))
    return None


def _first(texts: Column) -> Column:
    return F.get(F.filter(texts, lambda text: text.isNotNull()), F.lit(0))


def _has_numbers(kind: DataType) -> bool:
    """Whether values of a type may hold floating-point numbers."""
    return _has(kind, (DoubleType, FloatType))


def _with_text_decimals(column: Column, kind: DataType) -> Column:
    """The column with decimals as strings, without the zeros that only the scale of the type adds."""
    if not _has(kind, (DecimalType,)):
        return column
    match kind:
        case StructType():
            fields = [_with_text_decimals(column[field.name], field.dataType).alias(field.name) for field in kind]
            return F.when(column.isNotNull(), F.struct(*fields))
        case ArrayType():
            return F.transform(column, lambda item: _with_text_decimals(item, kind.elementType))
        case MapType():
            return F.transform_values(column, lambda _, item: _with_text_decimals(item, kind.valueType))
    return F.regexp_replace(column.cast("string"), _TRAILING_ZEROS, "$1")


def _has(kind: DataType, wanted: tuple[type[DataType], ...]) -> bool:
    """Whether values of a type may hold values of some others."""
    match kind:
        case StructType():
            return any(_has(field.dataType, wanted) for field in kind)
        case ArrayType():
            return _has(kind.elementType, wanted)
        case MapType():
            return _has(kind.valueType, wanted)
    return isinstance(kind, wanted)
