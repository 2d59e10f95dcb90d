"""The heavy actor my-actor."""

from typing import TypedDict

from pyspark.sql import SparkSession


class MyActor(TypedDict, total=False):
    """The payload. Keys that are not named here stay as they are."""

    numbers: list[float]
    total: float


def my_actor(spark: SparkSession, payload: MyActor) -> MyActor:
    """Add up the numbers. Write here what the job does."""
    numbers = spark.createDataFrame([(number,) for number in payload.get("numbers", [])], "number double")
    total = numbers.groupBy().sum("number").collect()[0][0]
    return {**payload, "total": total or 0.0}
