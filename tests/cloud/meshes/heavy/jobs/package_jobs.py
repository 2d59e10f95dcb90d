"""A job that imports packages on the driver and in the executors' Python."""

import importlib

from pyspark.sql.functions import udf


def look(spark, payload):
    names = payload["names"]
    found = udf(file_of)
    rows = spark.createDataFrame([(name,) for name in names], "name string").repartition(2)
    executor = {row["name"]: row["file"] for row in rows.select("name", found("name").alias("file")).collect()}
    return {"driver": {name: file_of(name) for name in names}, "executor": executor}


def file_of(name):
    """The file that a module comes from; None if there is no such module."""
    try:
        return importlib.import_module(name).__file__
    except ModuleNotFoundError:
        return None
