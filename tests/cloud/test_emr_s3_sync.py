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


KEYS = (
    *(
        "a:b.txt",
        ".hidden",
        "._x.crc",
        ".x/part",
        "x [1].txt",
        " a\tb",
        "é😀.txt",
        "_temporary_1/x",
        "back\\slash",
        "100%25 + #",
    ),
    *("star*?.txt", "{a,b}.txt", "12:30/[x]:y", "~", "_SUCCESS", "x=1/y=a:b"),
)
COPIES = """
import sys
import boto3
from pyspark.sql import SparkSession
bucket = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
def path(*names):
    found = jvm.org.apache.hadoop.fs.Path(f"s3://{bucket}/data/odd")
    for name in names:
        found = jvm.org.apache.hadoop.fs.Path(found, jvm.org.apache.hadoop.fs.Path(None, None, name))
    return found
def count(folder):
    return spark.read.format("binaryFile").option("recursiveFileLookup", True).load(folder.toString()).count()
source, target = path("in"), path("out")
files = source.getFileSystem(conf)
copied = files.listFiles(source, True)
while copied.hasNext():
    each = copied.next().getPath()
    below = each.toUri().getPath()[len(source.toUri().getPath()) + 1:]
    jvm.org.apache.hadoop.fs.FileUtil.copy(files, each, files, path("out", *below.split("/")), False, conf)
print(count(source), files.exists(path("in", "empty")))
s3 = boto3.client("s3")
s3.put_object(Bucket=bucket, Key="data/odd/in//x", Body=b"1")
for read in (lambda: spark.read.text(f"s3://{bucket}/data/odd/in"), lambda: spark.read.text(f"s3://{bucket}/data/odd/in//x")):
    try:
        read()
    except ValueError as error:
        print(type(error).__name__, f"'s3://{bucket}/data/odd/in//x'" in str(error))
print(count(target))
"""


def test_spark_reads_and_writes_any_key_or_is_refused(cloud: StandIn, boto3_path: str) -> None:
    for key in KEYS:
        cloud.put(f"data/odd/in/{key}", key)
    cloud.put("data/odd/in/empty/", "")

    run_id = cloud.start(COPIES, BUCKET, name="copies", parameters=boto3_path)
    run = cloud.wait(run_id)

    assert run["state"] == "SUCCESS", run["stateDetails"]
    assert (cloud.folder.emr / run_id / "stdout").read_text().splitlines() == [
        "11 True",  # without hidden names
        "UnseenObjectError True",
        "UnseenObjectError True",
        "11",
    ]
    assert {key.removeprefix("data/odd/out/") for key in cloud.keys("data/odd/out/")} == set(KEYS)
    s3 = cloud.client("s3")
    for key in KEYS:
        assert s3.get_object(Bucket=BUCKET, Key=f"data/odd/out/{key}")["Body"].read() == key.encode()
    assert set(cloud.keys("data/odd/in/")) == {f"data/odd/in/{key}" for key in (*KEYS, "empty/", "/x")}


DIFFERS = """
import subprocess, sys
import boto3
from pyspark.sql import SparkSession
bucket, key = sys.argv[1], "data/differs"
spark = SparkSession.builder.config("spark.sql.sources.partitionOverwriteMode", "dynamic").getOrCreate()
s3, Path = boto3.client("s3"), spark._jvm.org.apache.hadoop.fs.Path
def path(name):
    return Path(f"s3://{bucket}/{key}/{name}")
files = path("").getFileSystem(spark._jsc.hadoopConfiguration())
def create(name):
    stream = files.create(path(name), False)
    stream.write(bytearray(b"mine"))
    stream.close()
def listed(prefix):
    page = s3.list_objects_v2(Bucket=bucket, Prefix=f"{key}/{prefix}")
    return sorted(entry["Key"][len(key) + 1:].partition("-")[0] for entry in page.get("Contents", []))

create("folder/x")
create("out/_temporary/0/draft")
create("out/.spark-staging-1/p=1/draft")
create("out/.hidden")
files.delete(path("folder/x"), False)
print("an empty folder", files.exists(path("folder")), listed("folder"))
print("drafts", listed("out"))
create("many/1")
create("many/2")
print("a rename", files.rename(path("many"), path("moved")), listed("many"), listed("moved"))
for days in ([1, 2], [2]):
    frame = spark.createDataFrame([(day, day) for day in days], "n int, day int").coalesce(1)
    frame.write.mode("overwrite").partitionBy("day").parquet(f"s3://{bucket}/{key}/dynamic")
print("dynamic", listed("dynamic"))
spark.range(1).coalesce(1).write.mode("overwrite").parquet(f"s3://{bucket}/{key}/static")
print("static", listed("static"))
s3.put_object(Bucket=bucket, Key=f"{key}/claimed", Body=b"theirs")
try:
    s3.put_object(Bucket=bucket, Key=f"{key}/claimed", Body=b"mine", IfNoneMatch="*")
except s3.exceptions.ClientError as error:
    print("conditional", error.response["Error"]["Code"])
other = f"import boto3; boto3.client('s3').put_object(Bucket='{bucket}', Key='{key}/raced', Body=b'theirs')"
print("pulled", files.exists(path("claimed")))  # the next command of Spark brings nothing more
subprocess.run([sys.executable, "-c", other], check=True)
create("raced")
"""
OTHERWISE = """an empty folder True []
drafts ['out/.hidden']
a rename True [] ['moved/1', 'moved/2']
dynamic ['dynamic/day=1/part', 'dynamic/day=2/part']
static ['static/_SUCCESS', 'static/part']
conditional PreconditionFailed
pulled True
"""


def test_what_the_folder_does_otherwise_than_s3(cloud: StandIn, boto3_path: str) -> None:
    """Each of these is in the table of differences, and S3A does it otherwise."""
    run_id = cloud.start(DIFFERS, BUCKET, name="differs", parameters=boto3_path)
    run = cloud.wait(run_id)
    assert run["state"] == "SUCCESS", run["stateDetails"]
    assert (cloud.folder.emr / run_id / "stdout").read_text() == OTHERWISE
    assert cloud.keys("data/differs/out") == ["data/differs/out/.hidden"]
    raced = cloud.client("s3").get_object(Bucket=BUCKET, Key="data/differs/raced")
    assert raced["Body"].read() == b"mine"
