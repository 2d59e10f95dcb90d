"""The heavy actors: functions that also get a Spark session."""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


@dataclass
class Order:
    country: str
    price: float


@dataclass
class Checked:
    orders: list[Order]
    count: int


@dataclass
class Sales:
    count: int
    sales: dict[str, float]


def by_country(spark: SparkSession, payload: Checked) -> Sales:
    """Add up the prices by country."""
    rows = [(order.country, order.price) for order in payload.orders]
    orders = spark.createDataFrame(rows, "country string, price double")
    sales = orders.groupBy("country").agg(F.sum("price").alias("sales")).orderBy("country")
    return Sales(payload.count, {row.country: row.sales for row in sales.collect()})
