"""The EMR Serverless stand-in, driven by boto3: its API, its states, IAM, real PySpark, and its faults."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from asya.heavy.capacity import failed_for_capacity
from asya_local.account import AccessKey
from asya_local.emr.settings import ApplicationSettings, WorkerSettings
from asya_local.servers import ServerOptions
from tests.cloud.stand_in_cloud import APPLICATION, BUCKET, QUEUE, ROLE, SECONDS, StandIn, stand_in, until
from tests.doubles import emr_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.model import StructureShape

pytestmark = pytest.mark.cloud

PLAIN = "import sys; print('hello', *sys.argv[1:])"
SLEEPER = "import time; print('asleep', flush=True); time.sleep(600)"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    options = ServerOptions(
        event_queues=(QUEUE,),
        starts_per_second=50,
        start_burst=50,
        application=ApplicationSettings(max_vcpu=64, max_memory_gb=512),
        workers=WorkerSettings(at_once=2, reuse=True),
        faults=emr_faults.MODULE,
    )
    with stand_in(tmp_path_factory.mktemp("stand-in"), options) as running:
        yield running


@pytest.fixture(autouse=True)
def no_faults(cloud: StandIn) -> Iterator[None]:
    yield
    cloud.faults()


def start_by(cloud: StandIn, key: AccessKey, **more: Any) -> Any:
    client = cloud.client("emr-serverless", key)
    job = {"entryPoint": f"s3://{BUCKET}/code/none.py"}
    request = {"applicationId": APPLICATION, "executionRoleArn": ROLE, "jobDriver": {"sparkSubmit": job}} | more
    return client.start_job_run(**request)


def test_a_run_goes_through_the_states_and_every_change_is_an_event(cloud: StandIn) -> None:
    run_id = cloud.start(PLAIN, "a b", "c", name="states")

    run = cloud.wait(run_id)

    assert run["state"] == "SUCCESS", run["stateDetails"]
    assert run["name"] == "states"
    assert run["billedResourceUtilization"]["vCPUHour"] >= 16 / 60  # a driver and three executors, a minute at least
    assert (cloud.folder.emr / run_id / "stdout").read_text() == "hello a b c\n"

    def mine(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [event for event in events if event["detail"]["jobRunId"] == run_id]

    events = mine(cloud.events(lambda received: len(mine(received)) == 4))
    steps = {(event["detail"]["previousState"], event["detail"]["state"]) for event in events}
    assert steps == {
        ("SUBMITTED", "PENDING"),
        ("PENDING", "SCHEDULED"),
        ("SCHEDULED", "RUNNING"),
        ("RUNNING", "SUCCESS"),
    }
    assert events[0]["source"] == "aws.emr-serverless"
    assert events[0]["detail-type"] == "EMR Serverless Job Run State Change"
    assert events[0]["detail"]["jobRunName"] == "states"
    assert "stateDetails" not in events[0]["detail"]


def test_spark_reads_and_writes_s3_under_the_job_role(cloud: StandIn) -> None:
    source = cloud.put("data/in/numbers.csv", "n\n1\n2\n3\n")
    cloud.put("data/out/stale.txt", "deleted by the overwrite")
    script = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
frame = spark.read.option("header", True).csv(sys.argv[1])
frame.selectExpr("n", "cast(n as int) % 2 odd").write.mode("overwrite").partitionBy("odd").parquet(sys.argv[2])
print(spark.conf.get("spark.test.setting"), spark.sparkContext.appName)
"""
    run_id = cloud.start(
        script, source, f"s3://{BUCKET}/data/out", name="spark", parameters="--conf spark.test.setting='of the run'"
    )

    run = cloud.wait(run_id)

    assert run["state"] == "SUCCESS", run["stateDetails"]
    assert (cloud.folder.emr / run_id / "stdout").read_text() == "of the run spark\n"
    keys = cloud.keys("data/out/")
    assert "data/out/_SUCCESS" in keys
    assert {key.split("/")[2] for key in keys} == {"_SUCCESS", "odd=0", "odd=1"}
    assert not any(key.rsplit("/", 1)[-1].startswith(".") for key in keys)


def test_a_commit_reaches_s3_after_the_files_that_it_refers_to(cloud: StandIn) -> None:
    script = """
import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
jvm, configuration = spark._jvm, spark._jsc.hadoopConfiguration()
def write(uri, text):
    path = jvm.org.apache.hadoop.fs.Path(uri)
    stream = path.getFileSystem(configuration).create(path, True)
    stream.write(bytearray(text.encode())); stream.close()
base = "s3://stand-in-bucket/"
write(base + "data/committed/part", "data")
write(base + "runs/actor/1/heartbeat.json", "{}")
write(base + "runs/actor/1/commit.json", "{}")
time.sleep(600)
"""
    run_id = cloud.start(script, name="commit")

    until(
        lambda: "runs/actor/1/commit.json" in cloud.keys("runs/actor/1/"),
        SECONDS,
        "the commit, while the job still runs",
    )

    assert cloud.keys("data/committed/") == ["data/committed/part"]
    assert "runs/actor/1/heartbeat.json" in cloud.keys("runs/actor/1/")
    modified = {
        key: cloud.client("s3").head_object(Bucket=BUCKET, Key=key)["LastModified"]
        for key in ("data/committed/part", "runs/actor/1/commit.json")
    }
    assert modified["data/committed/part"] <= modified["runs/actor/1/commit.json"]
    cloud.client("emr-serverless").cancel_job_run(applicationId=APPLICATION, jobRunId=run_id)
    assert cloud.wait(run_id)["state"] == "CANCELLED"


def test_the_session_policy_narrows_what_a_run_may_do(cloud: StandIn) -> None:
    cloud.put("data/mine/in.txt", "mine")
    cloud.put("data/theirs/in.txt", "theirs")
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:PutObject"],
                "Resource": [f"arn:aws:s3:::{BUCKET}/data/mine/*", f"arn:aws:s3:::{BUCKET}/code/*"],
            },
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{BUCKET}"},
        ],
    }
    script = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for name in ("mine", "theirs"):
    path = spark._jvm.org.apache.hadoop.fs.Path(f"s3://stand-in-bucket/data/{name}/in.txt")
    print(name, path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path))
path = spark._jvm.org.apache.hadoop.fs.Path(f"s3://stand-in-bucket/data/{sys.argv[1]}/out")
path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path, True).close()
"""
    narrow = {"executionIamPolicy": {"policy": json.dumps(policy)}}

    allowed = cloud.start(script, "mine", name="allowed", **narrow)
    refused = cloud.start(script, "theirs", name="refused", **narrow)

    assert cloud.wait(allowed)["state"] == "SUCCESS"
    assert (cloud.folder.emr / allowed / "stdout").read_text() == "mine True\ntheirs False\n"
    failed = cloud.wait(refused)
    assert failed["state"] == "FAILED"
    assert "AccessDenied: s3:PutObject on s3://stand-in-bucket/data/theirs/out" in failed["stateDetails"]
    assert not cloud.keys("data/theirs/out")


def test_a_folder_needs_permission_for_its_own_key(cloud: StandIn) -> None:
    """S3A sends HEAD to `data/folder` before it lists `data/folder/`; 403 fails the job on EMR Serverless."""
    cloud.put("data/folder/numbers.csv", "1\n2\n")
    objects = f"arn:aws:s3:::{BUCKET}"
    below = [f"{objects}/data/folder/*", f"{objects}/code/*"]

    def narrow(name: str, script: str, read: list[str], write: list[str]) -> str:
        statements = [
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": read},
            {"Effect": "Allow", "Action": "s3:PutObject", "Resource": write or read},
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": objects},
        ]
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        session = f"from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n{script}"
        return cloud.start(session, name=name, executionIamPolicy={"policy": policy})

    count = "print(spark.read.csv('s3://stand-in-bucket/data/folder').count())"
    write = "spark.range(1).write.csv('s3://stand-in-bucket/data/written/out')"
    refused = narrow("refused", count, below, [])
    one_file = narrow("file", count.replace("folder'", "folder/numbers.csv'"), below, [])
    allowed = narrow("allowed", count, [*below, f"{objects}/data/folder"], [])
    elsewhere = """
for read in (
    lambda: spark.sql("SELECT * FROM csv.`s3://stand-in-bucket/data/folder`"),
    lambda: spark.sparkContext.textFile("s3://stand-in-bucket/data/folder"),
):
    try:
        read()
    except PermissionError as error:
        print(type(error).__name__)
"""
    sql_and_rdd = narrow("sql-and-rdd", elsewhere, below, [])
    write_only = narrow("write-only", write, below, [f"{objects}/data/written/*"])
    cloud.put("data/other/numbers.csv", "1\n")
    unnamed = narrow("unnamed", count.replace("folder'", "other/numbers.csv'"), below, [])

    for run_id in (allowed, one_file):
        run = cloud.wait(run_id)
        assert run["state"] == "SUCCESS", run["stateDetails"]
        assert (cloud.folder.emr / run_id / "stdout").read_text() == "2\n"
    assert cloud.wait(sql_and_rdd)["state"] == "SUCCESS"
    assert (cloud.folder.emr / sql_and_rdd / "stdout").read_text() == "RefusedPathError\n" * 2
    refusals = ((refused, "data/folder"), (write_only, "data/written/out"), (unnamed, "data/other/numbers.csv"))
    for run_id, path in refusals:
        failed = cloud.wait(run_id)
        assert failed["state"] == "FAILED"
        assert f"getFileStatus on s3://stand-in-bucket/{path}: 403 Forbidden" in failed["stateDetails"]


def test_state_details_name_the_cause_of_a_failure(cloud: StandIn) -> None:
    exception = cloud.wait(cloud.start("raise ValueError('no such flight')", name="raises"))
    exit_code = cloud.wait(cloud.start("import os; os._exit(7)", name="exits"))
    missing = cloud.wait(cloud.start("", name="missing", parameters="--py-files s3://stand-in-bucket/code/none.zip"))

    assert exception["state"] == exit_code["state"] == missing["state"] == "FAILED"
    assert "ExitCode: 1. Last few exceptions: ValueError: no such flight" in exception["stateDetails"]
    assert "ExitCode: 7." in exit_code["stateDetails"]
    assert "s3://stand-in-bucket/code/none.zip cannot be read with the job's role" in missing["stateDetails"]
    page = cloud.client("emr-serverless").get_dashboard_for_job_run(
        applicationId=APPLICATION, jobRunId=exception["jobRunId"]
    )
    assert "_local/runs/" in page["url"]


def test_a_client_token_starts_one_run(cloud: StandIn) -> None:
    first = cloud.start(PLAIN, name="token", clientToken="the-same")

    assert cloud.start(PLAIN, name="token", clientToken="the-same") == first
    with pytest.raises(ClientError, match="ConflictException"):
        cloud.start(PLAIN, "other", name="token", clientToken="the-same")
    assert cloud.wait(first)["state"] == "SUCCESS"


def test_cancel_kill_and_timeout(cloud: StandIn) -> None:
    client = cloud.client("emr-serverless")
    canceled = cloud.start(SLEEPER, name="canceled")
    killed = cloud.start(SLEEPER, name="killed")
    cloud.wait(canceled, ["RUNNING"])
    cloud.wait(killed, ["RUNNING"])

    client.cancel_job_run(applicationId=APPLICATION, jobRunId=canceled)
    assert cloud.kill(killed)

    assert cloud.wait(canceled)["state"] == "CANCELLED"
    failed = cloud.wait(killed)
    assert failed["state"] == "FAILED"
    assert "ExitCode: 137" in failed["stateDetails"]
    with pytest.raises(ClientError, match="ValidationException"):
        client.cancel_job_run(applicationId=APPLICATION, jobRunId=canceled)


def test_a_driver_works_before_its_executors_come(cloud: StandIn) -> None:
    cloud.faults(executor_seconds=3)
    script = """
import time
from pyspark.sql import SparkSession
began = time.monotonic()
spark = SparkSession.builder.getOrCreate()
print("the driver works", flush=True)
count = spark.range(5).count()
print("counted", count, "after the delay" if time.monotonic() - began >= 3 else "at once")
"""
    run_id = cloud.start(script, name="late-executors")

    run = cloud.wait(run_id)

    assert run["state"] == "SUCCESS", run["stateDetails"]
    output = (cloud.folder.emr / run_id / "stdout").read_text()
    assert output == "the driver works\ncounted 5 after the delay\n"


def test_the_tasks_of_lost_executors_run_again(cloud: StandIn) -> None:
    cloud.faults(lose_executors=1)
    script = """
import time
from pyspark import TaskContext
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()

def attempt(_):
    number = TaskContext.get().attemptNumber()
    if not number:
        time.sleep(600)  # until its executor is lost
    return number

print(spark.sparkContext.parallelize([1], 1).map(attempt).collect())
"""
    run_id = cloud.start(script, name="lost-executors")

    run = cloud.wait(run_id)

    assert run["state"] == "SUCCESS", run["stateDetails"]
    assert (cloud.folder.emr / run_id / "stdout").read_text() == "[1]\n"


def test_runs_over_the_capacity_are_queued(cloud: StandIn) -> None:
    cloud.faults(max_concurrent_runs=1)
    first = cloud.start(SLEEPER, name="first")
    cloud.wait(first, ["RUNNING"])
    second = cloud.start(PLAIN, name="second")

    assert cloud.wait(second, ["QUEUED"])["state"] == "QUEUED"
    cloud.client("emr-serverless").cancel_job_run(applicationId=APPLICATION, jobRunId=first)

    run = cloud.wait(second)
    assert run["state"] == "SUCCESS"
    assert run["queuedDurationMilliseconds"] > 0


def test_starts_are_throttled(cloud: StandIn) -> None:
    cloud.faults(starts_per_second=0.001, start_burst=2)
    uri = cloud.put("code/plain.py", PLAIN)

    def start(number: int) -> None:
        start_by(cloud, cloud.root, clientToken=f"throttled-{number}", jobDriver={"sparkSubmit": {"entryPoint": uri}})

    start(0)
    start(1)
    with pytest.raises(ClientError, match="Rate exceeded") as throttled:
        start(2)

    assert throttled.value.response["Error"]["Code"] == "ThrottlingException"
    assert throttled.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429


def test_calls_are_throttled_at_random_too(cloud: StandIn) -> None:
    cloud.faults(throttle=1)
    with pytest.raises(ClientError, match="ThrottlingException"):
        cloud.client("emr-serverless").list_applications()


def test_a_run_beyond_the_capacity_fails_with_that_reason(cloud: StandIn) -> None:
    cloud.faults(no_capacity=1)
    run = cloud.wait(cloud.start(PLAIN, name="no-capacity"))
    assert run["state"] == "FAILED"
    assert failed_for_capacity(run["state"], run["stateDetails"], has_driver_output=False)
    assert "startedAt" not in run


def test_a_repeated_call_with_a_delayed_response_starts_one_run(cloud: StandIn) -> None:
    cloud.faults(repeat_calls=1, delay_responses=1, response_seconds=0.2)
    run_id = cloud.start(PLAIN, name="twice")
    cloud.faults()
    runs = cloud.client("emr-serverless").list_job_runs(applicationId=APPLICATION, maxResults=50)["jobRuns"]
    assert [run["id"] for run in runs if run["name"] == "twice"] == [run_id]


def test_events_are_lost_and_repeated(cloud: StandIn) -> None:
    cloud.faults(lose_events=1)
    cloud.wait(cloud.start(PLAIN, name="lost"))
    cloud.faults(repeat_events=1)
    run_id = cloud.start(PLAIN, name="repeated")
    cloud.wait(run_id)

    def states(name: str, events: list[dict[str, Any]]) -> list[str]:
        return [event["detail"]["state"] for event in events if event["detail"]["jobRunName"] == name]

    received = cloud.events(lambda events: states("repeated", events).count("SUCCESS") == 2)
    assert not states("lost", received)


def test_a_lost_response_leaves_the_run(cloud: StandIn) -> None:
    cloud.faults(lose_responses=1)
    client = cloud.client("emr-serverless")
    job = {"entryPoint": cloud.put("code/plain.py", PLAIN)}
    request = {"applicationId": APPLICATION, "executionRoleArn": ROLE, "jobDriver": {"sparkSubmit": job}}
    with pytest.raises(Exception, match=r"(?i)connection|closed"):
        client.start_job_run(**request, clientToken="no-response", name="no-response")
    cloud.faults()

    run_id = client.start_job_run(**request, clientToken="no-response", name="no-response")["jobRunId"]

    runs = client.list_job_runs(applicationId=APPLICATION, maxResults=50)["jobRuns"]
    assert [run["id"] for run in runs if run["name"] == "no-response"] == [run_id]


def test_the_policies_of_the_caller_are_enforced(cloud: StandIn) -> None:
    application = f"arn:aws:emr-serverless:us-east-1:000000000000:/applications/{APPLICATION}"
    start = {"Effect": "Allow", "Action": "emr-serverless:StartJobRun", "Resource": application}
    to_emr = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
    to_lambda = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
    passing = {"Effect": "Allow", "Action": "iam:PassRole", "Resource": ROLE}

    reader = cloud.user("reader", {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"})
    starter = cloud.user("starter", start)
    wrong = cloud.user("wrong", start, {**passing, "Condition": to_lambda})
    right = cloud.user("right", start, {**passing, "Condition": to_emr})

    with pytest.raises(ClientError, match=r"user/reader is not authorized to perform: emr-serverless:StartJobRun"):
        start_by(cloud, reader)
    for key in (starter, wrong):
        with pytest.raises(ClientError, match=r"not authorized to perform: iam:PassRole"):
            start_by(cloud, key)
    run_id = start_by(cloud, right)["jobRunId"]
    assert cloud.run(run_id)["createdBy"].endswith("user/right")


def test_a_session_may_do_what_its_policies_allow_too(cloud: StandIn) -> None:
    """A session policy narrows the permissions of the role, as a permissions boundary does."""
    iam, sts = cloud.client("iam"), cloud.client("sts")
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    trust = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}, "Action": "sts:AssumeRole"}
    iam.create_role(
        RoleName="caller", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": trust})
    )
    policy = {"Version": "2012-10-17", "Statement": everything}
    iam.put_role_policy(RoleName="caller", PolicyName="all", PolicyDocument=json.dumps(policy))

    def client(*actions: str) -> Any:
        narrow = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": actions, "Resource": "*"}}
        role = "arn:aws:iam::000000000000:role/caller"
        keys = sts.assume_role(RoleArn=role, RoleSessionName="narrow", Policy=json.dumps(narrow))["Credentials"]
        return boto3.client(
            "emr-serverless",
            endpoint_url=cloud.servers.emr_endpoint,
            region_name="us-east-1",
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )

    job = {"sparkSubmit": {"entryPoint": cloud.put("code/plain.py", PLAIN)}}
    request: dict[str, Any] = {"applicationId": APPLICATION, "executionRoleArn": ROLE, "jobDriver": job}
    request |= {"clientToken": "narrow", "name": "narrow"}
    for actions, missing in ((["iam:*"], "emr-serverless:StartJobRun"), (["emr-serverless:*"], "iam:PassRole")):
        with pytest.raises(ClientError, match=f"not authorized to perform: {missing}"):
            client(*actions).start_job_run(**request)
    assert client("emr-serverless:*", "iam:PassRole").start_job_run(**request)["jobRunId"]


def test_signatures_are_checked(cloud: StandIn) -> None:
    forged = AccessKey(cloud.user("forged", {"Effect": "Allow", "Action": "*", "Resource": "*"}).access_key, "wrong")
    with pytest.raises(ClientError, match="InvalidSignatureException"):
        start_by(cloud, forged)
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        start_by(cloud, AccessKey("AKIAXXXXXXXXXXXXXXXX", "x"))
    unsigned: Any = boto3.client(
        "emr-serverless",
        endpoint_url=cloud.servers.emr_endpoint,
        region_name="us-east-1",
        config=Config(signature_version=UNSIGNED),
    )
    with pytest.raises(ClientError, match="Missing Authentication Token"):
        unsigned.list_applications()


def test_requests_are_checked_against_the_service_model(cloud: StandIn) -> None:
    client: Any = cloud.client("emr-serverless")
    # boto3 leaves patterns and maximum lengths to the service.
    shape: StructureShape = client.meta.service_model.operation_model("StartJobRun").input_shape
    assert "clientToken" in shape.required_members
    with pytest.raises(ClientError, match="clientToken does not match"):
        cloud.start(PLAIN, name="bad", clientToken="spaces are not allowed")
    with pytest.raises(ClientError, match="at most 2048"):
        cloud.start(PLAIN, name="bad", executionIamPolicy={"policy": "{" + " " * 2050})
    with pytest.raises(
        ClientError, match=r"sparkSubmitParameters: the local EMR Serverless does not know --deploy-mode"
    ):
        cloud.start(PLAIN, name="bad", parameters="--deploy-mode cluster")
    with pytest.raises(
        ClientError, match=r"initialExecutors: 3 must be between .*minExecutor 0 and .*maxExecutors 2\."
    ):
        cloud.start(PLAIN, name="bad", parameters="--conf spark.dynamicAllocation.maxExecutors=2")
    with pytest.raises(ClientError, match="Iceberg's jars are not on this machine"):
        cloud.start(
            PLAIN, name="bad", parameters="--conf spark.jars=/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
        )
    with pytest.raises(ClientError, match="Application 00none does not exist"):
        client.get_application(applicationId="00none")
    with pytest.raises(ClientError, match="JobRun 00none does not exist"):
        client.get_job_run(applicationId=APPLICATION, jobRunId="00none")


def test_applications_and_lists(cloud: StandIn) -> None:
    client: Any = cloud.client("emr-serverless")
    created = client.create_application(name="mine", releaseLabel="emr-spark-8.1.0", type="SPARK")
    client.start_application(applicationId=created["applicationId"])
    assert client.get_application(applicationId=created["applicationId"])["application"]["state"] == "STARTED"
    client.stop_application(applicationId=created["applicationId"])
    assert {each["id"] for each in client.list_applications()["applications"]} == {
        APPLICATION,
        created["applicationId"],
    }

    ids = {cloud.start(PLAIN, name=f"listed-{number}") for number in range(3)}
    for run_id in ids:
        cloud.wait(run_id)
    pages = client.get_paginator("list_job_runs").paginate(
        applicationId=APPLICATION, states=["SUCCESS"], PaginationConfig={"PageSize": 2}
    )
    listed = [run["id"] for page in pages for run in page["jobRuns"]]
    assert ids <= set(listed)
    assert len(listed) == len(set(listed))
