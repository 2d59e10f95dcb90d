"""Reads a table that jobs write once (`protocol §10.tables`)."""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from asya_spark import data
from asya_spark.tables.description import latest
from asya_spark.tables.folders import columns_of, folder_of, table_at
from asya_spark.tables.iceberg import find_table
from asya_spark.tables.replacements import each


def read(spark: SparkSession, table: str) -> DataFrame:
    """The rows of a table: a folder of Parquet files, plain or versioned, or an Iceberg table.

    The columns are those of all writes, with the types that they were written with: a partition `007` of a text stays a text. Of
    a versioned folder, each partition is read in one version, whole.

    Args:
        table: as for `append_once`.

    Raises:
        AnalysisException: there is no such table.
        TableError: a record or a file of it would have the reader run code, or read files of others.
    """
    iceberg = find_table(spark, table)
    if iceberg is not None:
        return spark.table(table)
    folder = folder_of(table)
    place = table_at(spark, folder, "plain")
    described = latest(place)
    if described is None:
        found = spark.read.parquet(data.object_uri(folder))
        columns_of(found, folder)
        return found
    if described.layout == "plain":
        return spark.read.schema(described.columns).parquet(data.object_uri(folder))
    place = replace(place, layout=described.layout)
    found_commits = each(lambda entry: place.commit_of(entry.key, entry.partition), place.last_entries())
    commits = [commit for commit in found_commits if commit]
    files = [data.object_uri(f"{commit.folder}/{name}") for commit in commits for name in commit.files]
    if not files:
        return spark.createDataFrame([], described.columns)
    return spark.read.schema(described.columns).parquet(*files)
