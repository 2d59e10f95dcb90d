"""Compacts the index of results, one day at a time (`protocol §11`).

x-sink writes small objects as envelopes end. This job writes all rows of a day as one Parquet folder, each end once. It keeps
the objects of x-sink, so a day can be compacted again, with the rows that arrived late.
"""

import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from asya_spark import clock
from asya_spark.files import HadoopFiles

RESULTS_URI = "ASYA_RESULTS_URI"

# The columns of the table, in its order; documented in docs/how-to/query-results.md.
COLUMNS: Mapping[str, str] = {
    "namespace": "string",
    "id": "string",
    "generation": "int",
    "parent_id": "string",
    "root_id": "string",
    "phase": "string",
    "reason": "string",
    "last_actor": "string",
    "route": "array<string>",
    "attempt": "int",
    "error_type": "string",
    "error_message": "string",
    "created_at": "string",
    "ended_at": "string",
    "seconds": "double",
    "payload_bytes": "bigint",
    "result_uri": "string",
    "recorded_by": "string",
    "tool": "string",
}
# Rows may arrive late, because x-sink files them under the day of the end.
DAYS = 3
# x-sink's objects expire after 30 days; the rest of an older day must not replace its complete rows.
MAX_AGE_DAYS = 28
ROWS_PER_FILE = 5_000_000


def compact(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Compacts the days before `time` (RFC 3339; now if missing), or the `days` of the payload.

    Returns:
        The payload with `compacted`: each day with its number of rows, null if x-sink wrote none.

    Raises:
        ValueError: if a day is malformed or too old.
    """
    days = payload.get("days") or days_before(payload.get("time"))
    checked = [check_day(day, clock.now().date()) for day in days]
    index = f"{os.environ[RESULTS_URI].rstrip('/')}/index/"
    return {**payload, "compacted": [{"day": day, "rows": compact_day(spark, index, day)} for day in checked]}


def compact_day(spark: SparkSession, index: str, day: str) -> int | None:
    """Writes the new files of a day, then removes the former ones.

    A concurrent reader may see rows twice, which the documented view handles, but never a day without rows.
    """
    files = HadoopFiles(spark)
    recent, compacted = f"{index}recent/dt={day}/", f"{index}days/dt={day}/"
    if not files.names(recent):
        return None
    before = files.names(compacted)
    rows = deduplicated(read_recent(spark, recent)).cache()
    try:
        count = rows.count()
        ordered = rows.repartition(-(-count // ROWS_PER_FILE) or 1).sortWithinPartitions("ended_at", "id")
        ordered.write.parquet(compacted, mode="append", compression="zstd")
    finally:
        rows.unpersist()
    for name in before:
        files.remove(compacted + name)
    return count


def read_recent(spark: SparkSession, folder: str) -> DataFrame:
    """The rows of x-sink, without malformed lines."""
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return spark.read.schema(schema).json(folder).where(F.col("id").isNotNull())


def deduplicated(rows: DataFrame) -> DataFrame:
    """One row for each envelope and generation, because messages may be delivered twice."""
    window = Window.partitionBy("id", "generation").orderBy("recorded_by", "ended_at", "result_uri")
    return rows.withColumn("nth", F.row_number().over(window)).where("nth = 1").select(*COLUMNS)


def days_before(time: str | None) -> list[str]:
    """The three days before a time, oldest first."""
    moment = datetime.fromisoformat(time).astimezone(UTC) if time else clock.now()
    return [(moment.date() - timedelta(days=back)).isoformat() for back in range(DAYS, 0, -1)]


def check_day(day: object, today: date) -> str:
    """Checks a day such as `2025-11-18`.

    Raises:
        ValueError: if the day is malformed or too old.
    """
    try:
        parsed = date.fromisoformat(str(day))
    except ValueError:
        raise ValueError(f"{day!r} is not a day such as 2025-11-18") from None
    if parsed < today - timedelta(days=MAX_AGE_DAYS):
        raise ValueError(f"{parsed} is more than {MAX_AGE_DAYS} days ago: objects of x-sink may have expired")
    return parsed.isoformat()
