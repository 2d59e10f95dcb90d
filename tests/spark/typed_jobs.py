"""Typed jobs for the tests of `asya_spark`."""

import dataclasses
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code
from pyspark.sql.types import LongType, StructType

from asya.runtime.fan_out import FanOut, fan_out


@dataclasses.dataclass
class Sale:
    day: date
    prices: list[Decimal]


@dataclasses.dataclass
class Total:
    day: date
    total: Decimal


def totals(spark: SparkSession, sale: Sale) -> Total:
    return Total(sale.day, sum(sale.prices, Decimal()))


def by_keys(spark: SparkSession, day: date, prices: list[Decimal], factor: int = 2) -> Total:
    return Total(day, sum(prices, Decimal()) * factor)


def generator(spark: SparkSession, sale: Sale) -> Iterator[Total | tuple]:  # type: ignore[type-arg]
    for price in sale.prices:
        yield "SET", ".headers.colour", "blue"
        yield Total(sale.day, price)


def wrong(spark: SparkSession, sale: Sale) -> Total:
    return {"day": sale.day}  # type: ignore[return-value]


def splits(spark: SparkSession, sale: Sale) -> FanOut:
    return fan_out([sale, sale.day], to=["score"])


def two(spark: SparkSession) -> None:
    pass


# --- DataFrame jobs ------------------------------------------------------------------------------------------------------

SUMMED: list[int] = []
"""The number of envelopes in each call of `sums`."""


@dataclasses.dataclass
class Delivery:
    sale: Sale
    at: datetime
    seal: bytes
    weights: dict[str, Decimal]
    note: str | None = None

    def __post_init__(self) -> None:
        if self.note == "":
            raise KeyError("an empty note")


@dataclasses.dataclass
class Ambiguous:
    price: int | Decimal


COUNT = StructType().add("n", LongType(), nullable=False)


def sums(spark: SparkSession, envelopes: DataFrame) -> DataFrame:
    """Adds the prices, and gives back what it got."""
    SUMMED.append(envelopes.count())
    kind = "decimal(38,18)"
    total = F.aggregate("payload.sale.prices", F.lit(0).cast(kind), lambda before, price: (before + price).cast(kind))
    return envelopes.select("id", F.struct("payload.*", total.alias("total")).alias("payload"))


def literal(spark: SparkSession, envelopes: DataFrame) -> DataFrame:
    """Gives a value of each Spark type whose JSON depends on the declaration."""
    values = {
        "total": "CAST(12.30 AS DECIMAL(12,2))",
        "at": "TIMESTAMP '2026-11-24 08:30:00.123456Z'",
        "day": "DATE '2026-11-24'",
        "raw": "X'FF00'",
    }
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    return envelopes.select(
        "id", F.struct(*(F.expr(each).alias(name) for name, each in values.items())).alias("payload")
    )
