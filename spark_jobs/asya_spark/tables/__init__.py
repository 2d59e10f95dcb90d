"""Writes to tables from jobs that run at least once.

`append_once(frame, table)` adds the rows of a frame, `replace_once(frame, table, where=…)` replaces a partition, and
`merge_once(frame, table, on=…)` updates and inserts rows, however often the job runs. A table is a folder of Parquet files or an
Iceberg table; a folder has no merge. `read(spark, table)` reads any of them.
"""

from asya_spark.tables.append import append_once
from asya_spark.tables.errors import TableError
from asya_spark.tables.merge import merge_once
from asya_spark.tables.read import read
from asya_spark.tables.replace import replace_once

__all__ = ["TableError", "append_once", "merge_once", "read", "replace_once"]
