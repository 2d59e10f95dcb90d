"""Jobs that cost nothing, so that only the runs themselves are measured."""

from pyspark.sql import functions as F  # noqa: N812 - everybody writes Spark so


def square(spark, payload):  # noqa: ARG001 - every job takes it
    """Square one number."""
    return {**payload, "square": payload["n"] ** 2}


def square_all(spark, envelopes):  # noqa: ARG001 - every job takes it
    """Square the numbers of all envelopes."""
    return envelopes.select("id", F.struct("payload.n", (F.col("payload.n") ** 2).alias("square")).alias("payload"))
