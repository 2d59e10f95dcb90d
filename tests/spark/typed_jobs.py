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


# --- numbers -------------------------------------------------------------------------------------------------------------


def bill(spark: SparkSession, total: Decimal, rest: list[float]) -> dict[str, str]:
    return {"total": str(total), "rest": repr(rest), "is_float": str({type(each) for each in rest} <= {float})}


def passed(spark: SparkSession, payload):  # type: ignore[no-untyped-def]
    yield {**payload, "is_float": type(payload["total"]) is not int and type(payload["total"]) is float}


def same(spark: SparkSession, envelopes: DataFrame) -> DataFrame:
    return envelopes.select("id", "payload")


def as_decimals(spark: SparkSession, envelopes: DataFrame) -> DataFrame:
    return envelopes.select("id", F.from_json("payload", "total DECIMAL(38,19)").alias("payload"))


_BAD = "n DOUBLE, s STRUCT<m: FLOAT>, a ARRAY<STRUCT<x: DOUBLE>>, d MAP<STRING, ARRAY<DOUBLE>>, t STRING"


def no_numbers(spark: SparkSession, envelopes: DataFrame) -> DataFrame:
    """Rows with what a payload names in a place that it names; the texts `NaN` elsewhere are texts."""
    bad = F.get_json_object("payload", "$.bad").cast("double")
    place = F.get_json_object("payload", "$.place")
    fine = F.lit(1.5)

    def at(name: str):  # type: ignore[no-untyped-def]
        return F.when(place == name, bad).otherwise(fine)

    payload = F.struct(
        at("n").alias("n"),
        F.struct(at("s").cast("float").alias("m")).alias("s"),
        F.array(F.struct(fine.alias("x")), F.struct(at("a").alias("x"))).alias("a"),
        F.create_map(F.lit("k"), F.array(fine, F.lit(None).cast("double"), at("d"))).alias("d"),
        F.lit("NaN").alias("t"),
    )
    row = F.struct(payload.alias("payload"), F.lit(1).alias("ordinal"))
    first = F.struct(F.from_json(F.lit('{"n": 1}'), _BAD).alias("payload"), F.lit(0).alias("ordinal"))
    return envelopes.select("id", F.explode(F.array(first, row)).alias("row")).select("id", "row.*")
