"""A job of the stand-in that uses S3 by boto3 beside Spark, which both see one S3 as on EMR Serverless."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asya_local.emr.settings import ApplicationSettings, WorkerSettings
from asya_local.servers import ServerOptions
from tests.cloud.stand_in_cloud import BUCKET, SECONDS, StandIn, stand_in, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cloud

PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
RESIDENT = """
import sys, time
import boto3
from pyspark.sql import SparkSession

bucket, folder = sys.argv[1:]
s3, spark = boto3.client("s3"), SparkSession.builder.getOrCreate()

def lines(name):
    return sorted(row.value for row in spark.read.text(f"s3://{bucket}/{folder}/{name}").collect())

spark.range(3).coalesce(1).write.parquet(f"s3://{bucket}/{folder}/out")
s3.put_object(Bucket=bucket, Key=f"{folder}/written", Body=b"")
while True:
    try:
        s3.get_object(Bucket=bucket, Key=f"{folder}/next")
        break
    except s3.exceptions.NoSuchKey:
        time.sleep(0.1)
print(lines("in"))
for body in (b"mine", b"mine again"):
    s3.put_object(Bucket=bucket, Key=f"{folder}/own/1.txt", Body=body)
    print(lines("own"))
spark.createDataFrame([("by Spark",)], "value string").coalesce(1).write.mode("overwrite").text(f"s3://{bucket}/{folder}/own")
listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"{folder}/own/")["Contents"]
[part] = [entry["Key"] for entry in listed if "part-" in entry["Key"]]
print(f"{folder}/own/1.txt" in [entry["Key"] for entry in listed])
print(s3.get_object(Bucket=bucket, Key=part)["Body"].read())
s3.put_object(Bucket=bucket, Key=part, Body=b"by boto3")
print(lines("own"))
s3.delete_object(Bucket=bucket, Key=part)
print(lines("own"))
"""
OUTPUT = """['first', 'second']
['mine']
['mine again']
False
b'by Spark\\n'
['by boto3']
[]
"""
POLLER = """
import sys, time
import boto3
from pyspark.sql import SparkSession
s3, spark = boto3.client("s3"), SparkSession.builder.getOrCreate()
while True:
    try:
        s3.get_object(Bucket=sys.argv[1], Key="data/poller/next")
        break
    except s3.exceptions.NoSuchKey:
        time.sleep(0.25)
"""
REFUSED = """
import sys
import boto3
from pyspark.sql import SparkSession
# By Hadoop's own class: the writers of DataFrames refuse the path before they write.
spark = SparkSession.builder.getOrCreate()
path = spark._jvm.org.apache.hadoop.fs.Path(f"s3://{sys.argv[1]}/elsewhere/out")
path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path, True).close()
boto3.client("s3").put_object(Bucket=sys.argv[1], Key="data/refused", Body=b"refers to what is not there")
"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    application = ApplicationSettings(max_vcpu=64, max_memory_gb=512)
    options = ServerOptions(
        starts_per_second=50, application=application, workers=WorkerSettings(at_once=1, reuse=True)
    )
    with stand_in(tmp_path_factory.mktemp("stand-in"), options) as running:
        yield running


@pytest.fixture(scope="module")
def boto3_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Submit parameters that put boto3 on the job's path, as packages of the mesh's own are."""
    folder = tmp_path_factory.mktemp("packages")
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
        (folder / source.name).symlink_to(source)
    return f"--conf spark.emr-serverless.driverEnv.PYTHONPATH={folder}"


@pytest.mark.parametrize("folder", ["data/first", "data/second"])  # both in one driver process
def test_boto3_and_spark_see_one_s3(cloud: StandIn, boto3_path: str, folder: str) -> None:
    run_id = cloud.start(RESIDENT, BUCKET, folder, name="resident", parameters=boto3_path)

    until(lambda: f"{folder}/written" in cloud.keys(folder), SECONDS, "the marker of the job")
    assert {key.rsplit("/")[-1].partition("-")[0] for key in cloud.keys(f"{folder}/out/")} == {"_SUCCESS", "part"}
    assert cloud.run(run_id)["state"] == "RUNNING"
    cloud.put(f"{folder}/in/1.txt", "first\nsecond\n")
    cloud.put(f"{folder}/next", "")

    run = cloud.wait(run_id)
    assert run["state"] == "SUCCESS", run["stateDetails"]
    assert (cloud.folder.emr / run_id / "stdout").read_text() == OUTPUT


def test_a_refused_write_of_spark_stops_the_job_before_boto3_writes(cloud: StandIn, boto3_path: str) -> None:
    run = cloud.wait(cloud.start(REFUSED, BUCKET, name="refused", parameters=boto3_path))

    assert run["state"] == "FAILED"
    assert f"AccessDenied: s3:PutObject on s3://{BUCKET}/elsewhere/out" in run["stateDetails"]
    assert not cloud.keys("data/refused")


def test_a_run_that_polls_s3_holds_no_slot(cloud: StandIn, boto3_path: str) -> None:
    waits = cloud.start(POLLER, BUCKET, name="poller", parameters=boto3_path)
    cloud.wait(waits, ["RUNNING"])

    works = cloud.wait(cloud.start("print('works')", name="works"))

    assert works["state"] == "SUCCESS", works["stateDetails"]
    assert cloud.run(waits)["state"] == "RUNNING"
    cloud.put("data/poller/next", "")
    assert cloud.wait(waits)["state"] == "SUCCESS"
