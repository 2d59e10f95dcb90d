"""Runs typical Spark operations once, so that the JVM archives the classes that jobs load.

`asya_local.emr.drivers.class_archive` starts it as a script: `cds_warmup.py <folder>`.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

ROWS = [(number, f"name {number % 7}", number / 3, None if number % 5 else "x") for number in range(1000)]


def mounts(bucket: str, uri: str) -> dict[str, str]:
    """Return the Spark configuration that mounts a bucket, as for jobs (`asya_local.emr.runner.mounts`)."""
    view = "spark.hadoop.fs.viewfs"
    return {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        f"{view}.overload.scheme.target.s3.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.hadoop.fs.disk.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        f"{view}.mounttable.{bucket}.linkFallback": uri.replace("file:", "disk:", 1),
    }


def main(folder: str) -> None:
    """Read, join, aggregate and write; then wait for the JVM, which writes the archive at its exit."""
    bucket = Path(folder, "b")
    bucket.mkdir()
    builder = SparkSession.builder
    for key, value in mounts("b", bucket.as_uri()).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    frame = spark.createDataFrame(ROWS, "id long, name string, size double, note string")
    frame.write.mode("overwrite").option("header", True).csv("s3://b/rows.csv", compression="gzip")
    read = spark.read.option("header", True).csv("s3://b/rows.csv", schema=frame.schema)
    read.dropDuplicates(["id"]).withColumn("part", f.col("id") % 3).write.partitionBy("part").parquet("s3://b/rows")
    rows = spark.read.parquet("s3://b/rows")
    names = f.broadcast(rows.select("name").distinct().withColumn("rank", f.row_number().over(Window.orderBy("name"))))
    grouped = rows.join(names, "name", "left").groupBy("rank", "part")
    grouped.agg(f.count("*"), f.avg("size"), f.expr("percentile(size, 0.95)")).orderBy("rank").limit(20).collect()
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path("s3://b/runs/x.json")
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    stream = files.create(path, True)
    stream.write(bytearray(b"{}"))
    stream.close()
    files.open(path).close()
    files.listStatus(path.getParent())
    spark.stop()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main(sys.argv[1])
