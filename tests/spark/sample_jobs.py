"""Sample jobs for the tests of `asya_spark`."""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from asya_spark import context

FOREVER = 3600
"""Seconds: longer than any limit."""


def by_payload(spark, payload):
    """Runs the behavior that `do` of the payload names."""
    return BEHAVIORS[payload["do"]](spark, payload)


def generator(spark, payload):
    yield {"first": (yield ("GET", ".id"))}
    yield
    yield ("SET", ".route.next[:0]", ["extra"])
    yield ("SET", ".headers.colour", "blue")
    yield {"second": payload["n"]}
    if payload.get("then") == "raise":
        raise KeyError("after two frames")


def _counted(spark, payload):
    return {"rows": spark.range(payload["n"]).count()}


def _shuffle(spark, payload):
    return {"groups": spark.range(payload["n"]).selectExpr("id % 100 as k").distinct().count()}


def _none(spark, payload):
    return None


def _raise(spark, payload):
    raise ValueError(f"bad input {payload['n']}")


def _not_json(spark, payload):
    return {"a": [1, {2, 3}]}


def _exit(spark, payload):
    sys.exit(3)


def _sleep(spark, payload):
    time.sleep(payload["n"])


def _spin(spark, payload):
    while True:
        pass


# Ends the calls that ignore their interruption.
RELEASED = threading.Event()


def _ignore_interruption(spark, payload):
    while not RELEASED.is_set():
        with contextlib.suppress(BaseException):
            while not RELEASED.wait(0.05):
                pass


def _long_spark(spark, payload):
    spark.range(2).foreach(lambda _: time.sleep(payload["n"]))


async def _async(spark, payload):
    await asyncio.sleep(0)
    return {"n": payload["n"]}


async def _async_generator(spark, payload):
    yield {"id": (yield ("GET", ".id"))}
    yield {"n": payload["n"]}


def _list(spark, payload):
    return [1, 2]


def _context(spark, payload):
    current = context()
    return {
        "id": current.id,
        "scratch": current.scratch,
        "colour": current.headers["colour"],
        "attempt": current.attempt,
    }


def _fly(spark, payload):
    context().fly({"text": "first"})
    context().fly({"text": "second"})


def _fly_by_abi(spark, payload):
    yield ("FLY", {"text": "by the ABI"})


def _fly_badly(spark, payload):
    context().fly(["no object"])


def _wait_for_heartbeat(spark, payload):
    """Runs four tasks until a heartbeat lists their stage; copies that heartbeat."""
    folder, copy = Path(payload["folder"]), Path(payload["copy"])

    def heartbeat_with_stages():
        for path in folder.rglob("heartbeat-*.json"):
            try:
                text = path.read_text()
                if json.loads(text)["stages"]:
                    return text
            except (OSError, ValueError):  # the heartbeat is being written
                pass
        return None

    def wait(row):
        while (text := heartbeat_with_stages()) is None:
            time.sleep(0.05)
        if row.id == 0:
            copy.write_text(text)

    spark.range(0, 4, 1, 4).foreach(wait)


def _secret_length(spark, payload):
    return len(os.environ["SHOP_KEY"])


def _secret_of_executor(spark, payload):
    return spark.sparkContext.parallelize([0], 1).map(lambda _: [os.environ.get("SHOP_KEY")]).first()[0] or "unset"


def _raise_secret(spark, payload):
    raise ValueError(f"401: {os.environ['SHOP_KEY']}")


BEHAVIORS = {
    "secret-length": _secret_length,
    "secret-of-executor": _secret_of_executor,
    "raise-secret": _raise_secret,
    "fly": _fly,
    "fly-by-abi": _fly_by_abi,
    "fly-badly": _fly_badly,
    "wait-for-heartbeat": _wait_for_heartbeat,
    "count": _counted,
    "shuffle": _shuffle,
    "none": _none,
    "raise": _raise,
    "not-json": _not_json,
    "exit": _exit,
    "sleep": _sleep,
    "spin": _spin,
    "ignore-interruption": _ignore_interruption,
    "long-spark": _long_spark,
    "async": _async,
    "async-generator": _async_generator,
    "list": _list,
    "context": _context,
    "generator": generator,
}


def double(spark, envelopes: DataFrame) -> DataFrame:
    """Doubles `n`; for 3 two frames out of order, for 4 no frame, for 5 an error."""
    n = F.get_json_object("payload", "$.n").cast("int")
    rows = envelopes.select("id", n.alias("n")).where("n <> 4")
    frames = rows.withColumn(
        "ordinal", F.explode(F.when(F.col("n") == 3, F.array(F.lit(1), F.lit(0))).otherwise(F.array(F.lit(0))))
    )
    return frames.select(
        "id",
        "ordinal",
        F.struct((F.col("n") * 2).alias("doubled"), F.col("ordinal"), F.lit(None).cast("string").alias("gap")).alias(
            "payload"
        ),
        F.when(F.col("n") == 2, F.array(F.lit("elsewhere"))).alias("route_next"),
        F.when(F.col("n") == 5, F.lit("five is too much")).alias("error"),
    )


def typed(spark, envelopes: DataFrame) -> DataFrame:
    return envelopes.select("id", F.to_json(F.struct((F.col("payload.n") + 1).alias("n"))).alias("payload"))


def unknown_id(spark, envelopes: DataFrame) -> DataFrame:
    return spark.createDataFrame([("unknown", "1")], "id STRING, payload STRING")


def broken(spark, envelopes: DataFrame) -> DataFrame:
    return envelopes.select("no_such_column")


def strict(spark, envelopes: DataFrame) -> DataFrame:
    """Raises for an `n` that is not a number."""
    n = F.get_json_object("payload", "$.n").cast("int")
    return envelopes.select("id", F.struct((n + 1).alias("n")).alias("payload"))


def always_fails(spark, envelopes: DataFrame) -> DataFrame:
    """Raises, and writes a mark for each call."""
    calls = envelopes.select(F.get_json_object("payload", "$.calls")).first()[0]
    with open(calls, "a") as file:
        file.write(".")
    raise RuntimeError("never")


def returns_int(spark, envelopes: DataFrame) -> DataFrame:
    return 3


def sleeps(spark, envelopes: DataFrame) -> DataFrame:
    time.sleep(FOREVER)
    return envelopes


def raise_secret_frame(spark, envelopes: DataFrame) -> DataFrame:
    raise ValueError(f"401: {os.environ['SHOP_KEY']}")


def endless(spark, payload):
    number = 0
    while True:
        yield {"number": number}
        number += 1


def large(spark, payload):
    for size in payload["sizes"]:
        yield "x" * size


def large_rows(spark, envelopes: DataFrame) -> DataFrame:
    text = F.expr("repeat('x', CAST(get_json_object(payload, '$.size') AS INT))")
    return envelopes.select("id", F.struct(text.alias("text")).alias("payload"))
