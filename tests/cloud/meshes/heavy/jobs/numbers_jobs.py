"""Payload and DataFrame jobs on numbers; some append their name to the trail of the payload."""

import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code


def square_all(spark, envelopes: DataFrame) -> DataFrame:
    n = F.col("payload.n")
    return envelopes.select("id", F.struct(n.alias("n"), (n * n).alias("square")).alias("payload"))


def square(spark, payload):
    return {**payload, "square": payload["n"] ** 2}


def double(spark, payload):
    time.sleep(payload.get("seconds", 0))
    return {**payload, "n": payload["n"] * 2, "trail": [*payload["trail"], "double"]}


def halve(spark, envelopes: DataFrame) -> DataFrame:
    n = (F.col("payload.n") / 2).cast("int")
    trail = F.concat("payload.trail", F.array(F.lit("halve")))
    return envelopes.select("id", F.struct(n.alias("n"), trail.alias("trail")).alias("payload"))
