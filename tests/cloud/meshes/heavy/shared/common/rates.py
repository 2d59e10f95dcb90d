"""Reads the file beside this module."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(_: object = None) -> str:
    """Return the text of the file."""
    return (Path(__file__).parent / "rates.json").read_text().strip()


def handle(payload: dict[str, Any]) -> dict[str, Any]:
    """Read the file in a function, beside the module and below the working folder."""
    return {**payload, "function": [read(), Path("common/rates.json").read_text().strip()]}


def job(spark: "SparkSession", payload: dict[str, Any]) -> dict[str, Any]:
    """Read the file on the driver and on an executor."""
    executor = spark.sparkContext.parallelize([0], 1).map(read).collect()
    return {**payload, "run": [read(), *executor]}
