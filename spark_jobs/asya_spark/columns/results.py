"""The JSON text of the `payload` column that a DataFrame job returns (`protocol §10.dataframe.result`)."""

import math

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType, DoubleType, FloatType, MapType, StringType, StructType

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
