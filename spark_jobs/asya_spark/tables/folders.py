"""A folder of Parquet files as a table, by Spark: its files, its description, the identity of a call."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from asya_spark import clock, data
from asya_spark.context import Context, context
from asya_spark.files import HadoopFiles, is_hidden
from asya_spark.tables.commits import commits_for
from asya_spark.tables.description import Description, class_of, found_partitions
from asya_spark.tables.errors import TableError
from asya_spark.tables.records import Layout
from asya_spark.tables.replacements import Table, each


def folder_of(table: str) -> str:
    """The URI of a table, from a reference below the data of the mesh or from a URI."""
    return (table if "://" in table else data.uri(table, write=True)).rstrip("/")


def table_at(spark: SparkSession, uri: str, layout: Layout) -> Table:
    """The table in a folder.

    Raises:
        ValueError: another scheme than `s3://`, or `file://` in a test.
        ModuleNotFoundError: on S3, without boto3.
    """
    return Table(uri, layout, HadoopFiles(spark), commits_for(uri), clock.now)


def call_key(function: str, folder: str, name: str) -> str:
    """Identifies a call by the hop and never by the attempt: 32 hex digits.

    Raises:
        TableError: in a DataFrame job.
    """
    current = context()
    if current.is_run:
        raise TableError(
            f"{function}({folder!r}) is for jobs with one payload. A DataFrame job has many envelopes in a call, and other ones "
            "in a repetition; write their rows in a way that a second write does no harm"
        )
    call = name or current.next_ordinal(f"{function} {folder}")
    identity = [function, current.id, current.generation, current.position, folder, call]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def call_of(current: Context) -> dict[str, Any]:
    """Who writes, for the commit."""
    return {
        "id": current.id,
        "parent_id": current.parent_id,
        "generation": current.generation,
        "actor": current.actor,
        "position": current.position,
        "attempt": current.attempt,
        "run": current.run,
    }


def check_partitions(table: str, columns: Iterable[str]) -> None:
    """Refuses folders that no reader finds.

    Raises:
        ValueError: for a column whose folders are hidden.
    """
    if unreadable := [column for column in columns if is_hidden(f"{column}=")]:
        raise ValueError(
            f"{table}: no reader finds the partitions of {unreadable[0]!r}, because its folders begin with a dot; rename it"
        )


def describe_files(frame: DataFrame, table: Table) -> Description | None:
    """What the files of a table tell that nobody has described; None if there are none.

    Columns of folders have the types that they have in the frame: a folder has a text.
    """
    names = [name for name in table.files.tree(table.uri) if name.endswith(".parquet")]
    if not names:
        return None
    spark = frame.sparkSession
    uri = data.object_uri(f"{table.uri}/{names[0]}")
    stored = columns_of(spark.read.parquet(uri), uri)
    partitions = found_partitions(names[0])
    for field in frame.schema:
        if field.name in partitions and field.name not in stored.names:
            stored = stored.add(field)
    return Description(stored, partitions, None, "plain")


def columns_of(frame: DataFrame, uri: str) -> T.StructType:
    """The columns of files that somebody has written.

    Raises:
        TableError: a file names a class, whose code Python would run when it reads the type.
    """
    java: Any = frame._jdf
    named = class_of(json.loads(java.schema().json()))
    if named:
        raise TableError(
            f"{uri} has a column of the class {named:.200}, and reading the type would run its code. Nothing is read: find out "
            "who has written it, then remove it"
        )
    return frame.schema


@dataclass(frozen=True)
class Written:
    """What Spark has written.

    Attributes:
        files: relative to their folder.
        outside: the rows that do not belong there.
    """

    files: tuple[str, ...]
    rows: int
    outside: int


def count_outside(outside: Column) -> list[Column]:
    """Counts the rows of a frame, and those that do not belong where they are written."""
    return [F.count(F.lit(1)).alias("rows"), F.count_if(outside).alias("outside")]


def write_parquet(
    frame: DataFrame, folder: str, partitions: Sequence[str], files: HadoopFiles, outside: Column | None = None
) -> Written:
    """Writes a frame, and looks that the files have all of its rows: a file that is not found would be rows lost in silence.

    Args:
        outside: whether a row does not belong there.

    Raises:
        TableError: the files have other rows than Spark has written.
    """
    seen = Observation()
    counts = count_outside(F.lit(False) if outside is None else outside)
    writer = frame.observe(seen, *counts).write
    (writer.partitionBy(*partitions) if partitions else writer).parquet(folder)
    staged = tuple(name for name in files.tree(folder) if name.endswith(".parquet"))
    rows, found = seen.get["rows"], sum(each(lambda name: files.parquet_rows(f"{folder}/{name}"), staged))
    if rows != found:
        raise TableError(
            f"Spark has written {rows} rows to {folder}, and its files ({len(staged)}) have {found}. "
            "Nothing of them is in the table; the files stay there"
        )
    return Written(staged, rows, seen.get["outside"])
