"""MiniStack and the EMR Serverless stand-in without any mesh: what the tests of the stand-in run against."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import boto3

from asya_local.emr.settings import ApplicationSettings
from asya_local.keys import ACCOUNT_ID, REGION, AccessKey, new_root_key
from asya_local.processes import end_all
from asya_local.servers import ServerOptions, Servers, start_servers
from asya_local.state_folder import StateFolder
from asya_local.tools import find_tools
from tests.doubles import emr_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

BUCKET = "stand-in-bucket"
QUEUE = "stand-in-completion"
APPLICATION = ApplicationSettings().application_id
ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/stand-in-job"
T = TypeVar("T")
SECONDS = 300.0
"""After which something is given up that a test waits for: no machine is so slow."""

OVER = frozenset({"SUCCESS", "FAILED", "CANCELLED"})


@dataclass
class StandIn:
    """A running stand-in, and what a test needs to talk to it."""

    folder: StateFolder
    servers: Servers
    root: AccessKey

    def client(self, service: str, keys: AccessKey | None = None) -> Any:
        """A boto3 client, with root's keys or the given ones."""
        key = keys or self.root
        endpoint = self.servers.emr_endpoint if service == "emr-serverless" else self.servers.endpoint
        build: Any = boto3.client
        return build(
            service,
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id=key.access_key,
            aws_secret_access_key=key.secret_key,
        )

    def user(self, name: str, *statements: dict[str, Any]) -> AccessKey:
        """A new IAM user that may do what the statements say."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        iam.put_user_policy(UserName=name, PolicyName="inline", PolicyDocument=document)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return AccessKey(key["AccessKeyId"], key["SecretAccessKey"])

    def put(self, key: str, body: str) -> str:
        """Write an object; returns its URI."""
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body.encode())
        return f"s3://{BUCKET}/{key}"

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of the objects under a prefix."""
        found = self.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in found.get("Contents", [])]

    def start(self, script: str, *arguments: str, name: str = "test", **more: Any) -> str:
        """Start a run of a script; returns its id."""
        job: dict[str, Any] = {
            "entryPoint": self.put(f"code/{name}.py", script),
            "entryPointArguments": list(arguments),
        }
        if "parameters" in more:
            job["sparkSubmitParameters"] = more.pop("parameters")
        answer = self.client("emr-serverless").start_job_run(
            applicationId=APPLICATION,
            executionRoleArn=ROLE,
            name=name,
            jobDriver={"sparkSubmit": job},
            **{"clientToken": f"{name}-{time.time_ns()}", **more},
        )
        return str(answer["jobRunId"])

    def run(self, run_id: str) -> dict[str, Any]:
        """What GetJobRun says."""
        found = self.client("emr-serverless").get_job_run(applicationId=APPLICATION, jobRunId=run_id)
        return dict(found["jobRun"])

    def wait(
        self, run_id: str, states: Sequence[str] | frozenset[str] = OVER, seconds: float = SECONDS
    ) -> dict[str, Any]:
        """Wait until the run is in one of the states."""

        def arrived() -> dict[str, Any] | None:
            found = self.run(run_id)
            return found if found["state"] in states or found["state"] in OVER else None

        return until(arrived, seconds, f"{run_id} in {sorted(states)}")

    def faults(self, **faults: float) -> None:
        """Inject faults; without any, remove all."""
        emr_faults.inject(self.folder.emr, **faults)

    def kill(self, run_id: str) -> bool:
        """Kill a run's driver; False if it has none."""
        url = f"{self.servers.emr_endpoint}/_local/runs/{run_id}/kill"
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=30) as response:
            return bool(json.load(response)["killed"])

    def events(self, enough: Callable[[list[dict[str, Any]]], bool], seconds: float = SECONDS) -> list[dict[str, Any]]:
        """Receive events from the completion queue until there are enough."""
        sqs = self.client("sqs")
        url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        found: list[dict[str, Any]] = []

        def receive() -> bool:
            for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get(
                "Messages", []
            ):
                found.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return enough(found)

        until(receive, seconds, "the events")
        return found


def until(condition: Callable[[], T | None], seconds: float, what: str) -> T:
    """Look for something until it is there."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.2)


@contextmanager
def stand_in(path: Path, options: ServerOptions) -> Iterator[StandIn]:
    """Both servers, a bucket, a queue, and a job role that may use the bucket's `data/`, `runs/`, `logs/` and `code/`."""
    folder, root = StateFolder.at(path), new_root_key()
    folder.create()
    try:
        cloud = StandIn(folder, start_servers(folder, find_tools(), root, options), root)
        cloud.client("s3").create_bucket(Bucket=BUCKET)
        cloud.client("sqs").create_queue(QueueName=QUEUE)
        _make_job_role(cloud)
        yield cloud
    finally:
        end_all(folder)


def _make_job_role(cloud: StandIn) -> None:
    trust = {"Effect": "Allow", "Principal": {"Service": "emr-serverless.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam = cloud.client("iam")
    iam.create_role(
        RoleName="stand-in-job",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
    )
    objects = [f"arn:aws:s3:::{BUCKET}/{prefix}/*" for prefix in ("data", "runs", "logs", "code")]
    statements = [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": objects},
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{BUCKET}"},
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName="stand-in-job", PolicyName="job", PolicyDocument=document)
