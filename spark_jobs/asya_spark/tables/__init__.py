"""Appends to tables from jobs that run at least once.

`append_once(frame, table)` adds the rows of a frame to a folder of Parquet files, however often the job runs.
"""

from asya_spark.tables.append import AppendError, append_once

__all__ = ["AppendError", "append_once"]
