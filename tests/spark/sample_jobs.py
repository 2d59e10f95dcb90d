"""Jobs as users write them, for the tests of `asya_spark`."""

import asyncio
import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from asya_spark import context

FOREVER = 3600
"""Seconds: longer than any limit."""


def by_payload(spark, payload):
    """Do what the payload's `do` says."""
    return BEHAVIOURS[payload["do"]](spark, payload)


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
    seen = context()
    return {"id": seen.id, "scratch": seen.scratch, "colour": seen.headers["colour"], "attempt": seen.attempt}


def _fly(spark, payload):
    context().fly({"said": "first"})
    context().fly({"said": "second"})


def _fly_by_abi(spark, payload):
    yield ("FLY", {"said": "by the ABI"})


def _fly_badly(spark, payload):
    context().fly(["no object"])


def _heard_spark(spark, payload):
    """Its four tasks go on until a heartbeat tells of them; that one is kept."""
    folder, kept = Path(payload["folder"]), Path(payload["kept"])

    def told():
        for path in folder.rglob("heartbeat-*.json"):
            try:
                text = path.read_text()
                if json.loads(text)["stages"]:
                    return text
            except (OSError, ValueError):  # it is being written just now
                pass
        return None

    def wait(row):
        while (text := told()) is None:
            time.sleep(0.05)
        if row.id == 0:
            kept.write_text(text)

    spark.range(0, 4, 1, 4).foreach(wait)


BEHAVIOURS = {
    "fly": _fly,
    "fly-by-abi": _fly_by_abi,
    "fly-badly": _fly_badly,
    "heard-spark": _heard_spark,
    "count": _counted,
    "none": _none,
    "raise": _raise,
    "not-json": _not_json,
    "exit": _exit,
    "sleep": _sleep,
    "spin": _spin,
    "long-spark": _long_spark,
    "async": _async,
    "async-generator": _async_generator,
    "list": _list,
    "context": _context,
    "generator": generator,
}


def double(spark, envelopes: DataFrame) -> DataFrame:
    """Doubles `n`; three: twice as two frames, out of order; four: nothing; five: an error of its own."""
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


def stranger(spark, envelopes: DataFrame) -> DataFrame:
    return spark.createDataFrame([("nobody", "1")], "id STRING, payload STRING")


def broken(spark, envelopes: DataFrame) -> DataFrame:
    return envelopes.select("no_such_column")


def strict(spark, envelopes: DataFrame) -> DataFrame:
    """Raises for an `n` that is no number."""
    n = F.get_json_object("payload", "$.n").cast("int")
    return envelopes.select("id", F.struct((n + 1).alias("n")).alias("payload"))


def always_fails(spark, envelopes: DataFrame) -> DataFrame:
    """Raises, and leaves a mark for each call."""
    calls = envelopes.select(F.get_json_object("payload", "$.calls")).first()[0]
    with open(calls, "a") as file:
        file.write(".")
    raise RuntimeError("never")


def formless(spark, envelopes: DataFrame) -> DataFrame:
    return 3


def sleeps(spark, envelopes: DataFrame) -> DataFrame:
    time.sleep(FOREVER)
    return envelopes
