"""A job that says which process it runs in, reads data that came after its start, and writes some."""

from uuid import uuid4

from asya_spark import data

# A job run imports this module once.
PROCESS = uuid4().hex


def keep(spark, payload):
    """Count the lines of a file and write that many rows."""
    rows = spark.read.text(data.uri(payload["lines"])).count() if "lines" in payload else 0
    if "rows" in payload:
        spark.range(rows).write.parquet(data.uri(payload["rows"], write=True))
    return {"process": PROCESS, "rows": rows}
