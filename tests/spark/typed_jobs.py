"""Typed jobs for the tests of `asya_spark`."""

import dataclasses
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from pyspark.sql import SparkSession

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
