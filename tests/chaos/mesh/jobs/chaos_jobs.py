"""Jobs of the heavy actors, which append their names to the trail of the payload."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def clean(spark: Any, payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "cleaned": payload["n"] + 1, "trail": [*payload["trail"], "clean"]}


def square(spark: Any, envelopes: DataFrame) -> DataFrame:
    cleaned = F.col("payload.cleaned")
    trail = F.concat("payload.trail", F.array(F.lit("square")))
    kept = [F.col(f"payload.{name}").alias(name) for name in ("name", "n", "cleaned")]
    return envelopes.select(
        "id", F.struct(*kept, trail.alias("trail"), (cleaned * cleaned).alias("squared")).alias("payload")
    )


def rank(spark: Any, payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "rank": payload["squared"] % 7, "trail": [*payload["trail"], "rank"]}
