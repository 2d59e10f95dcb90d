"""Jobs that kill their process if the payload says so, and one that runs until it is canceled."""

import os
import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from asya_spark import context


def each(spark, payload):
    if payload.get("crash"):
        os._exit(9)
    return {**payload, "done": True}


def sized(spark, payload):
    size = spark.conf.get("spark.probe.size")
    if size == "small" and payload["dies"] == "exit":
        os._exit(137)
    if size == "small" and payload["dies"] == "heap":
        spark._jvm.java.nio.ByteBuffer.allocate(2**31 - 1)
    return {**payload, "size": size, "heap": spark._jvm.java.lang.Runtime.getRuntime().maxMemory() // 2**20}


def together(spark, envelopes: DataFrame) -> DataFrame:
    crash = F.get_json_object("payload", "$.crash") == "true"
    if envelopes.where(crash).count():
        os._exit(9)
    return envelopes.select("id", "payload")


def endless(spark, payload):
    for number in range(600):
        context().fly({"number": number})
        spark.range(0, 4, 1, 4).foreach(lambda _: time.sleep(1))
    return payload
