"""The heavy actor; it puts its version and the number of the run into the payload. The test deploys another version."""

import os
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code

from asya_spark import context

VERSION = 1
FREE_RUNS = 2


def square(spark, envelopes: DataFrame) -> DataFrame:
    """Squares `n` as often as its version says; later runs than the free ones wait while the gate exists."""
    run = int(context().id.rpartition(".")[2])
    while run > FREE_RUNS and Path(os.environ["GATE"]).exists():
        time.sleep(0.1)
    n, entered = F.col("payload.n"), F.col("payload.entered")
    result = F.pow(n, F.lit(2 * VERSION)).cast("long")
    payload = F.struct(
        n.alias("n"),
        entered.alias("entered"),
        result.alias("result"),
        F.lit(VERSION).alias("squared"),
        F.lit(run).alias("run"),
    )
    return envelopes.select("id", payload.alias("payload"))
