"""Writes to tables from jobs that run at least once.

`append_once(frame, table)` adds the rows of a frame, and `replace_once(frame, table, where=…)` replaces a partition, however often
the job runs. A table is a folder of Parquet files, or for appends an Iceberg table. `read(spark, table)` reads any of them.
"""

from asya_spark.tables.append import append_once
from asya_spark.tables.errors import TableError
from asya_spark.tables.read import read
from asya_spark.tables.replace import replace_once

__all__ = ["TableError", "append_once", "read", "replace_once"]
