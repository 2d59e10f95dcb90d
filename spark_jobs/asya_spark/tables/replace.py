"""Replaces partitions of a table once, however often the job runs (`protocol §10.replace-once`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from asya_spark.context import context
from asya_spark.files import HadoopFiles
from asya_spark.tables.commits import tell_earlier
from asya_spark.tables.description import Evolve, Write, latest, settle, shaped
from asya_spark.tables.errors import TableError
from asya_spark.tables.folders import (
    call_key,
    call_of,
    check_partitions,
    count_outside,
    describe_files,
    folder_of,
    table_at,
    write_parquet,
)
from asya_spark.tables.iceberg import IcebergTable, find_table, quoted, write_in_branch
from asya_spark.tables.records import Layout
from asya_spark.tables.replacements import Replacements

_TYPES = (
    T.StringType,
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DecimalType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


def replace_once(
    frame: DataFrame,
    table: str,
    *,
    where: Mapping[str, Any],
    partition_by: Sequence[str] = (),
    layout: Layout = "plain",
    evolve: Evolve | None = None,
    name: str = "",
) -> None:
    """Replaces one partition of a folder of Parquet files, or rows of an Iceberg table, once for this hop of the envelope.

    The rows of the first attempt that gets this far count, and a repetition changes nothing. A new envelope, a replay and a
    backfill of the same day replace it again. Of two calls for one partition, the rows of the later commit stay, also if the
    earlier one goes on after it. A frame without rows empties the partition. What is replaced stays for a day below `_asya` in
    the table.

    In a *plain* table, any engine reads the partition as a folder; while one is published, a reader may find both versions or
    neither. In a *versioned* table, `read` finds one version, whole, and plain readers of the folder find nothing. Readers of an
    Iceberg table find one version, whole.

    Args:
        frame: the rows, with the columns of `where`.
        table: the folder, as a reference below the data of the mesh, or as a URI; or an Iceberg table, as
            `catalog.database.table` with a catalog of the session.
        where: the partition, as its columns and their values. A folder is always replaced by the same columns.
        partition_by: further columns that become folders within the partition, in a plain table.
        layout: `plain` or `versioned`, always the same for a table.
        evolve: `add` adds columns that the table lacks, fills those that the frame lacks with nulls, and casts narrower numbers.
        name: tells this call apart from others of the hop, in place of their order.

    Raises:
        TableError: a row is outside `where`; the rows would break the table; in a DataFrame job; what was staged is gone.
        ValueError: `where` is empty, or names a column or a value that is none of the frame's; or an option of folders for an
            Iceberg table.
        RuntimeError: outside a job.
        ModuleNotFoundError: the table is on S3 and the run has no boto3; name it in the `requirements.txt` of the jobs.
    """
    spark = frame.sparkSession
    iceberg = find_table(spark, table)
    if iceberg is not None:
        if partition_by or evolve or layout != "plain":
            raise ValueError(
                f"{table} is an Iceberg table, with partitions and columns of its own; leave those options out"
            )
        _replace_rows(frame, iceberg, where, call_key("replace_once", table, name))
        return
    folder = folder_of(table)
    place = table_at(spark, folder, layout)
    key = call_key("replace_once", folder, name)
    columns = _where_columns(frame, where, folder)
    partition = _partition_folder(spark, columns, where)
    partitions = (*where, *partition_by)
    if layout == "versioned" and partition_by:
        raise ValueError(f"{folder}: a versioned table has no folders within a partition; leave partition_by out")
    check_partitions(folder, partitions)
    write = Write(frame.schema, partitions, tuple(where), layout, evolve)
    described = settle(place, write, None if latest(place) else describe_files(frame, place))
    rows = shaped(frame, described.columns)

    def stage(staging: str) -> tuple[tuple[str, ...], int]:
        files = HadoopFiles(spark)
        written = write_parquet(
            rows, staging, partitions if layout == "plain" else (), files, outside=~_matches(columns)
        )
        if written.outside:
            files.remove_folder(staging)
            raise _outside(folder, where, written.outside, written.rows)
        return written.files, written.rows

    if not Replacements(place, partition).run(key, stage, call_of(context())):
        tell_earlier(f"{folder}/{partition}")


def _replace_rows(frame: DataFrame, table: IcebergTable, where: Mapping[str, Any], key: str) -> None:
    """Replaces rows of an Iceberg table."""
    columns = _where_columns(frame, where, table.name)
    _partition_folder(frame.sparkSession, columns, where)

    def write(branch: str) -> None:
        counts = count_outside(~_matches(columns))
        seen = Observation()
        table.replace(frame.observe(seen, *counts), _filter(columns), branch, key)
        if outside := seen.get["outside"]:
            raise _outside(table.name, where, outside, seen.get["rows"])

    if not write_in_branch(table, key, write):
        tell_earlier(table.name)


def _outside(table: str, where: Mapping[str, Any], outside: int, rows: int) -> TableError:
    return TableError(
        f"{outside} of {rows} rows are outside {dict(where)} and would be in no partition that this call "
        f"replaces; nothing of {table} is replaced. Filter the frame, or replace each partition by a call of its own"
    )


@dataclass(frozen=True)
class _Value:
    """A column of `where`.

    Attributes:
        value: of the type of the column.
    """

    field: T.StructField
    value: Column
    is_null: bool


def _where_columns(frame: DataFrame, where: Mapping[str, Any], folder: str) -> list[_Value]:
    """The values of `where`, with the types that the columns have in the frame.

    Raises:
        ValueError: a column or a value that is none of the frame's.
    """
    if not where:
        raise ValueError(
            f"{folder}: where names no partition; give its columns and values, such as where={{'day': day}}"
        )
    fields = {field.name: field for field in frame.schema}
    for column, value in where.items():
        if column not in fields:
            raise ValueError(f"{folder}: where names {column!r}, which is no column of the frame: {', '.join(fields)}")
        if not isinstance(fields[column].dataType, _TYPES):
            raise ValueError(
                f"{folder}: {column!r} is {fields[column].dataType.simpleString()}, whose values make no folders; "
                "use text, whole numbers, decimals, dates or times"
            )
        if value == "":
            raise ValueError(
                f"{folder}: readers find no empty text for {column!r}, but a null; use None or another text"
            )
    return [
        _Value(fields[column], F.lit(value).cast(fields[column].dataType), value is None)
        for column, value in where.items()
    ]


def _matches(columns: Sequence[_Value]) -> Column:
    """Whether a row is in the partition."""
    return reduce(and_, (F.col(quoted(item.field.name)).eqNullSafe(item.value) for item in columns))


def _filter(columns: Sequence[_Value]) -> Column:
    """The same as Iceberg reads it, without the comparison that takes two nulls as equal."""
    return reduce(
        and_,
        (
            F.col(quoted(item.field.name)).isNull() if item.is_null else F.col(quoted(item.field.name)) == item.value
            for item in columns
        ),
    )


def _partition_folder(spark: SparkSession, columns: Sequence[_Value], where: Mapping[str, Any]) -> str:
    """The folder of a partition, as Spark names it.

    Raises:
        ValueError: a value that is none of its column's type.
    """
    texts = [item.value.cast("string").alias(f"c{number}") for number, item in enumerate(columns)]
    try:
        row: Any = spark.range(1).select(*texts).first()
    except PySparkException as error:
        raise ValueError(f"where={dict(where)}: {str(error).splitlines()[0]}") from error
    names: Any = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils  # type: ignore[union-attr]
    parts = []
    for item, text in zip(columns, row, strict=True):
        given = where[item.field.name]
        if text is None and given is not None:
            raise ValueError(f"{given!r} is no {item.field.dataType.simpleString()} for {item.field.name!r}")
        parts.append(str(names.getPartitionPathString(item.field.name, text)))
    return "/".join(parts)
