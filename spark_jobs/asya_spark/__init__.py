"""The job side of a heavy actor: a manifest in, the user's function per envelope, results and one commit out.

For jobs:

    from asya_spark import context, data

    def clean(spark, payload):
        rows = spark.read.parquet(data.uri(payload["rows"]))
        ...
        return {**payload, "clean": reference}

This runs with the Python of EMR Serverless: the standard library, pyspark, and those modules of `asya` that need no more.
"""

from asya_spark import data
from asya_spark.context import Context, context

__all__ = ["Context", "context", "data"]
