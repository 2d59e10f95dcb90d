"""The JSON text of the `payload` column that a DataFrame job returns (`protocol §10.dataframe.result`)."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructType

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


def _with_text_decimals(column: Column, kind: DataType) -> Column:
    """The column with decimals as strings, without the zeros that only the scale of the type adds."""
    if not _has_decimals(kind):
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


def _has_decimals(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(_has_decimals(field.dataType) for field in kind)
        case ArrayType():
            return _has_decimals(kind.elementType)
        case MapType():
            return _has_decimals(kind.valueType)
    return isinstance(kind, DecimalType)
