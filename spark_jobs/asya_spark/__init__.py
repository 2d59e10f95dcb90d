"""The job side of a heavy actor: reads a manifest, calls the job function, writes results and one commit.

A job uses it so:

    from asya_spark import context, data

    def clean(spark, payload):
        rows = spark.read.parquet(data.uri(payload["rows"]))
        ...
        return {**payload, "clean": reference}

It runs on EMR Serverless with the standard library, pyspark, and the modules of `asya` that need nothing else.
"""

from asya_spark import data
from asya_spark.context import Context, context

__all__ = ["Context", "context", "data"]
