"""Appends to tables from jobs that run at least once.

`append_once(frame, table)` adds the rows of a frame to a folder of Parquet files or to an Iceberg table, however often the job
runs.
"""

from asya_spark.tables.append import append_once
from asya_spark.tables.errors import TableError

__all__ = ["TableError", "append_once"]
