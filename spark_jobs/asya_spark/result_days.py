"""The mesh's own job: the index of results, compacted a day at a time (`protocol §11`).

x-sink writes small objects as envelopes end. Here all rows of a day become one Parquet folder, each end once. Nothing is taken
away from what x-sink wrote, so a day can be compacted again at any time, and late rows find their way in.
"""

import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

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
}
# Rows may come late: what waited on a queue is written under the day on which it ended.
DAYS = 3
# x-sink's objects are kept for 30 days; of an older day some may be gone, and what is left may not replace the whole.
OLDEST = 28
ROWS_PER_FILE = 5_000_000


def compact(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Compact the days before `time` (RFC 3339; now if missing), or the `days` that the payload lists.

    Returns:
        The payload, and in `compacted` each day with the number of its rows, null where x-sink has written none.

    Raises:
        ValueError: if a day is no day, or too long ago.
    """
    days = payload.get("days") or days_before(payload.get("time"))
    checked = [check_day(day, datetime.now(UTC).date()) for day in days]
    index = f"{os.environ[RESULTS_URI].rstrip('/')}/index/"
    return {**payload, "compacted": [{"day": day, "rows": compact_day(spark, index, day)} for day in checked]}


def compact_day(spark: SparkSession, index: str, day: str) -> int | None:
    """Write a day anew: first the new files, then away with those that were there before.

    A reader who comes in between sees rows twice, which the documented view expects, and never a day without rows.
    """
    files = HadoopFiles(spark)
    recent, compacted = f"{index}recent/dt={day}/", f"{index}days/dt={day}/"
    if not files.names(recent):
        return None
    before = files.names(compacted)
    rows = each_end_once(read_recent(spark, recent)).cache()
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
    """The rows as x-sink wrote them; a line that is none is left out."""
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return spark.read.schema(schema).json(folder).where(F.col("id").isNotNull())


def each_end_once(rows: DataFrame) -> DataFrame:
    """One row for each envelope and generation: messages may come twice."""
    told = Window.partitionBy("id", "generation").orderBy("recorded_by", "ended_at", "result_uri")
    return rows.withColumn("nth", F.row_number().over(told)).where("nth = 1").select(*COLUMNS)


def days_before(time: str | None) -> list[str]:
    """The days before a moment, the oldest first."""
    moment = datetime.fromisoformat(time).astimezone(UTC) if time else datetime.now(UTC)
    return [(moment.date() - timedelta(days=back)).isoformat() for back in range(DAYS, 0, -1)]


def check_day(day: object, today: date) -> str:
    """A day such as `2025-11-18`, if it may be compacted.

    Raises:
        ValueError: saying why not.
    """
    try:
        found = date.fromisoformat(str(day))
    except ValueError:
        raise ValueError(f"{day!r} is no day such as 2025-11-18") from None
    if found < today - timedelta(days=OLDEST):
        raise ValueError(f"{found} is more than {OLDEST} days ago: some of what x-sink wrote may be gone")
    return found.isoformat()
