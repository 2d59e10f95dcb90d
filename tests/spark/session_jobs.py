"""Sample jobs that ask for sessions, change them, and work beside each other."""

import locale
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark import InheritableThread, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from asya_spark import context
from asya_spark.tables import append_once

_spark_of_module = SparkSession.getActiveSession()
"""As in many scripts; here the module may be imported before there is a session."""


class BadRowError(ValueError):
    """Raised in a Python worker."""


def stops_spark(spark, payload):
    rows = spark.range(payload["n"]).count()
    match payload["stop"]:
        case "spark":
            spark.stop()
        case "session":
            SparkSession.builder.getOrCreate().stop()
        case "context":
            spark.sparkContext.stop()
        case "with":
            with spark:
                pass
    return {"rows": rows}


def counts(spark, payload):
    return {"rows": spark.range(payload["n"]).count()}


def leaves_all_behind(spark, payload):
    found = {
        "views": [table.name for table in spark.catalog.listTables()],
        "ansi": spark.conf.get("spark.sql.ansi.enabled"),
        "function": spark.catalog.functionExists("own"),
        "cached": spark.sparkContext._jsc.getPersistentRDDs().size(),
        "global_views": [table.name for table in spark.catalog.listTables("global_temp")],
        "streams": len(spark.streams.active),
    }
    rows = spark.range(3)
    rows.createOrReplaceTempView("view")
    rows.createOrReplaceGlobalTempView("global_view")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.udf.register("own", lambda: payload["name"])
    rows.cache().count()
    spark.sparkContext.parallelize([1]).cache().count()
    spark.readStream.format("rate").load().writeStream.format("noop").start()
    return found


def changes_the_rest_of_its_process(spark, payload):
    context, java = spark.sparkContext, spark.sparkContext._jvm.java.util
    forms = getattr(java, "Locale$Category").FORMAT
    found = {
        "database": spark.catalog.currentDatabase(),
        "property": context.getLocalProperty("own"),
        "checkpoints": context._jsc.sc().getCheckpointDir().isDefined(),
        "path": "/own" in sys.path,
        "locale": locale.setlocale(locale.LC_CTYPE) == payload["locale"],
        "zone": time.strftime("%Z"),
        "java_zone": java.TimeZone.getDefault().getID(),
        "sql_zone": spark.conf.get("spark.sql.session.timeZone"),
        "java_locales": [java.Locale.getDefault().toString(), java.Locale.getDefault(forms).toString()],
    }
    spark.sql("CREATE DATABASE IF NOT EXISTS own")
    spark.catalog.setCurrentDatabase("own")
    context.setLocalProperty("own", "left")
    context.setCheckpointDir(payload["folder"])
    sys.path.append("/own")
    locale.setlocale(locale.LC_CTYPE, payload["locale"])
    os.environ["TZ"] = "XYZ-9"
    time.tzset()
    java.TimeZone.setDefault(java.TimeZone.getTimeZone("Asia/Tokyo"))
    java.Locale.setDefault(java.Locale.JAPAN)
    return found


def leaves_what_stays(spark, payload):
    """Leaves what no run restores; `isolation` says with whom it is shared."""
    context, name = spark.sparkContext, payload["name"]
    system = context._jvm.java.lang.System
    found = {
        "module": getattr(time, "left_by_a_call", None),
        "imported": "left_by_a_call" in sys.modules,
        "files": [Path(file).name for file in context.listFiles],
        "java_property": system.getProperty("left.by.a.call"),
    }
    time.left_by_a_call = name
    sys.modules["left_by_a_call"] = sys
    context.addFile(payload["file"])
    system.setProperty("left.by.a.call", name)
    return found


def _view(spark):
    return spark.table("view").first()[0]


def _in_thread(kind):
    def ask(_spark):
        found = []
        thread = kind(target=lambda: found.append(_view(SparkSession.builder.getOrCreate())))
        thread.start()
        thread.join()
        return found[0]

    return ask


_pool = ThreadPoolExecutor(1)
"""Made before any envelope, and used by all of them."""


def _by_module(_spark):
    global _spark_of_module  # noqa: PLW0603 - as scripts do
    if _spark_of_module is None or not hasattr(_spark_of_module, "_root"):
        # Outside every envelope, as while the module is imported in a driver.
        found = []
        thread = threading.Thread(target=lambda: found.append(SparkSession.builder.getOrCreate()))
        _start_without_envelope(thread)
        thread.join()
        _spark_of_module = found[0]
    return _view(_spark_of_module)


def _start_without_envelope(thread):
    from contextvars import Context

    Context().run(thread.start)


WAYS = {
    "argument": _view,
    "builder": lambda _: _view(SparkSession.builder.getOrCreate()),
    "builder with settings": lambda _: _view(
        SparkSession.builder.appName("ported").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    ),
    "active": lambda _: _view(SparkSession.active()),
    "getActiveSession": lambda _: _view(SparkSession.getActiveSession()),
    "thread": _in_thread(threading.Thread),
    "inheritable thread": _in_thread(InheritableThread),
    "executor": lambda _: _pool.submit(lambda: _view(SparkSession.active())).result(),
    "toDF": lambda spark: (
        spark.sparkContext.parallelize([("view",)]).toDF(["name"]).sparkSession.table("view").first()[0]
    ),
    "module": _by_module,
}


def asks_for_the_session(spark, payload):
    spark.createDataFrame([("view",)], "name STRING").createOrReplaceTempView("view")
    assert context().id in _pool.submit(lambda: context().id).result()
    return {name: ask(spark) for name, ask in WAYS.items()}


def asks_for_the_session_of_frames(spark, envelopes: DataFrame) -> DataFrame:
    spark.createDataFrame([("view",)], "name STRING").createOrReplaceTempView("view")
    answers = {name: ask(spark) for name, ask in WAYS.items()}
    return envelopes.select(
        "id", F.create_map(*(F.lit(text) for pair in answers.items() for text in pair)).alias("payload")
    )


def works_beside_others(spark, payload):
    """Changes all that a session has, waits for the others to do so too, and reads it."""
    name = payload["name"]
    everywhere = SparkSession.builder.getOrCreate()
    everywhere.createDataFrame([(name,)], "name STRING").createOrReplaceTempView("view")
    everywhere.conf.set("spark.own.name", name)
    everywhere.udf.register("own", lambda: name)
    cached = everywhere.createDataFrame([(name,)], "name STRING").cache()
    cached.createOrReplaceTempView("cached")
    cached.count()
    SparkContext.getOrCreate().setLocalProperty("own.name", name)
    _wait_for_all(Path(payload["barrier"]), name, payload["count"])
    return {
        "view": SparkSession.active().table("view").first()[0],
        "conf": SparkSession.active().conf.get("spark.own.name"),
        "function": SparkSession.active().sql("SELECT own()").first()[0],
        "cached": SparkSession.active().table("cached").first()[0],
        "property": SparkContext.getOrCreate().getLocalProperty("own.name"),
        "pool": SparkContext.getOrCreate().getLocalProperty("spark.scheduler.pool"),
    }


def _wait_for_all(folder, name, count):
    folder.mkdir(exist_ok=True)
    (folder / name).touch()
    while len(list(folder.iterdir())) < count:
        time.sleep(0.01)


def waits(spark, payload):
    """The first one ends after the last one has."""
    if "wait_for" in payload:
        while not Path(payload["wait_for"]).exists():
            time.sleep(0.01)
    elif payload["n"] == 2:
        Path(payload["release"]).touch()
    return {}


def _bad_row(row):
    raise BadRowError(f"row {row} is bad\nand so is the next")


def fails(spark, payload):
    folder = Path(payload["folder"])
    match payload["kind"]:
        case "missing-file":
            spark.read.parquet(f"file://{folder}/nowhere")
        case "broken-file":
            (folder / "broken.parquet").write_text("this is no parquet")
            spark.read.schema("a int").parquet(f"file://{folder}/broken.parquet").collect()
        case "broken-footer":
            (folder / "footer.parquet").write_text("this is no parquet")
            spark.read.parquet(f"file://{folder}/footer.parquet")
        case "malformed-row":
            (folder / "rows.csv").write_text("1,2\nx,3\n")
            spark.read.schema("a int, b int").csv(f"file://{folder}/rows.csv", mode="FAILFAST").collect()
        case "division":
            spark.range(1).select(F.lit(1) / F.col("id")).collect()
        case "cast":
            spark.createDataFrame([("abc",)], ["text"]).select(F.col("text").cast("int")).collect()
        case "column":
            spark.range(1).select("price")
        case "statement":
            spark.sql("selec 1")
        case "worker":
            spark.range(1).select(F.udf(_bad_row, "int")("id")).collect()
        case "worker-rdd":
            spark.sparkContext.parallelize([0], 1).map(_bad_row).collect()
        case "java":
            spark._jvm.java.lang.Class.forName("nowhere.Nothing")


def appends(spark, payload):
    append_once(spark.range(payload["rows"]), "tables/clean")
    return payload


def changes_its_process(spark, payload):
    """Changes what all calls share, or gives what it finds of that."""
    context = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    if payload["tenant"] is not None:
        os.environ |= {"TENANT": payload["tenant"], "PATH": "/nowhere"}
        context.environment["TENANT"] = payload["tenant"]
        os.chdir("/")
        hadoop.set("own.tenant", payload["tenant"])
        hadoop.unset("io.file.buffer.size")
        return _file_system(spark).getConf().get("own.tenant")
    return {
        "variable": os.environ.get("TENANT"),
        "own": os.environ.get("PATH") == payload["path"],
        "of_workers": context.parallelize([1]).map(lambda _: os.environ.get("TENANT")).collect(),
        "folder": os.getcwd() == payload["folder"],
        "hadoop": [hadoop.get("own.tenant"), hadoop.get("io.file.buffer.size")],
        "of_file_system": _file_system(spark).getConf().get("own.tenant"),
    }


def _file_system(spark):
    """The cached file system of a scheme that nothing else opens."""
    jvm, hadoop = spark._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    return jvm.org.apache.hadoop.fs.Path("viewfs://tenant/").getFileSystem(hadoop)
