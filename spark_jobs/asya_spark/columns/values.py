"""Makes the values of a Spark type of JSON values, for `createDataFrame`. What does not fit is a `ContractError`.

`from_json` is not used: it rounds decimals, takes `5` for a timestamp and the date of a time, and its error names no field and
fails the rows beside it.
"""

import datetime
import decimal
import math
import struct
from collections.abc import Callable
from typing import Any

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

from asya.contracts.errors import ContractError, mismatch
from asya.contracts.scalars import BOOLEAN, INTEGER, NUMBER, TEXTS, BytesCodec
from asya.contracts.spark_types import NoSparkTypeError
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
