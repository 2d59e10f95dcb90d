"""Merges rows into an Iceberg table once, however often the job runs (`protocol §10.branches.iceberg`)."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from asya_spark.tables.commits import tell_earlier
from asya_spark.tables.errors import TableError
from asya_spark.tables.folders import call_key
from asya_spark.tables.iceberg import find_table, write_in_branch


def merge_once(frame: DataFrame, table: str, *, on: Sequence[str], name: str = "") -> None:
    """Updates the rows of an Iceberg table that a frame has, and inserts the others, once for this hop of the envelope.

    A row of the frame belongs to the row of the table with the same values of `on`; two nulls are the same. All columns are
    updated. Readers find all changes or none. A commit of others at the same time is never overwritten: the merge is repeated
    on what they have left.

    Args:
        frame: the rows, each value of `on` once.
        table: `catalog.database.table` with a catalog of the session. A folder cannot change rows; use `replace_once` there.
        on: the columns that identify a row.
        name: tells this call apart from others of the hop, in place of their order.

    Raises:
        TableError: the table is a folder; or in a DataFrame job, whose call has many envelopes.
        ValueError: `on` is empty, or names a column that is none of the frame's.
        RuntimeError: outside a job.
    """
    iceberg = find_table(frame.sparkSession, table)
    if iceberg is None:
        raise TableError(
            f"merge_once changes rows of Iceberg tables, and {table} is a folder, whose files stay as they are; "
            "replace whole partitions with replace_once"
        )
    unknown = [column for column in on if column not in frame.columns]
    if unknown or not on:
        raise ValueError(f"on={list(on)}: name columns of the frame that identify a row: {', '.join(frame.columns)}")
    key = call_key("merge_once", table, name)
    if not write_in_branch(iceberg, key, lambda branch: iceberg.merge(frame, on, branch, key)):
        tell_earlier(table)
