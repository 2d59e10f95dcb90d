"""MiniStack and the EMR Serverless stand-in without a mesh, for the tests of the stand-in."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import boto3

from asya_local.account import ACCOUNT_ID, REGION, AccessKey, new_root_key, read_secret
from asya_local.authentication.admission import SECRET_HEADER
from asya_local.emr.settings import ApplicationSettings
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
"""The timeout of each wait, for slow machines."""

TERMINAL = frozenset({"SUCCESS", "FAILED", "CANCELLED"})


@dataclass
class StandIn:
    """A running stand-in with its clients."""

    folder: StateFolder
    servers: Servers
    root: AccessKey

    @property
    def secret(self) -> str:
        """The secret of the cloud's internal paths."""
        return read_secret(self.folder.secret)

    def client(self, service: str, keys: AccessKey | None = None) -> Any:
        """Create a boto3 client with this key; root's is the default."""
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
        """Create an IAM user with these permissions; return its key."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        iam.put_user_policy(UserName=name, PolicyName="inline", PolicyDocument=document)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return AccessKey(key["AccessKeyId"], key["SecretAccessKey"])

    def put(self, key: str, body: str) -> str:
        """Write an object; return its URI."""
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body.encode())
        return f"s3://{BUCKET}/{key}"

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys of the objects under a prefix."""
        page = self.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in page.get("Contents", [])]

    def start(self, script: str, *arguments: str, name: str = "test", **more: Any) -> str:
        """Start a run of a script; return its id."""
        job: dict[str, Any] = {
            "entryPoint": self.put(f"code/{name}.py", script),
            "entryPointArguments": list(arguments),
        }
        if "parameters" in more:
            job["sparkSubmitParameters"] = more.pop("parameters")
        response = self.client("emr-serverless").start_job_run(
            applicationId=APPLICATION,
            executionRoleArn=ROLE,
            name=name,
            jobDriver={"sparkSubmit": job},
            **{"clientToken": f"{name}-{time.time_ns()}", **more},
        )
        return str(response["jobRunId"])

    def run(self, run_id: str) -> dict[str, Any]:
        """Return the description of GetJobRun."""
        response = self.client("emr-serverless").get_job_run(applicationId=APPLICATION, jobRunId=run_id)
        return dict(response["jobRun"])

    def wait(
        self, run_id: str, states: Sequence[str] | frozenset[str] = TERMINAL, seconds: float = SECONDS
    ) -> dict[str, Any]:
        """Wait until the run is in one of the states, or terminal."""

        def run_in_state() -> dict[str, Any] | None:
            run = self.run(run_id)
            return run if run["state"] in states or run["state"] in TERMINAL else None

        return until(run_in_state, seconds, f"{run_id} in {sorted(states)}")

    def faults(self, **faults: float) -> None:
        """Inject faults; without any, remove all."""
        emr_faults.inject(self.folder.emr, **faults)

    def kill(self, run_id: str) -> bool:
        """Kill a run's driver; False if it has none."""
        url = f"{self.servers.emr_endpoint}/_local/runs/{run_id}/kill"
        request = urllib.request.Request(url, method="POST", headers={SECRET_HEADER: self.secret})
        with urllib.request.urlopen(request, timeout=30) as response:
            return bool(json.load(response)["killed"])

    def events(self, enough: Callable[[list[dict[str, Any]]], bool], seconds: float = SECONDS) -> list[dict[str, Any]]:
        """Receive events from the completion queue until there are enough."""
        sqs = self.client("sqs")
        url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        events: list[dict[str, Any]] = []

        def receive() -> bool:
            for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get(
                "Messages", []
            ):
                events.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return enough(events)

        until(receive, seconds, "the events")
        return events


def until(condition: Callable[[], T | None], seconds: float, subject: str) -> T:
    """Poll a condition; return its first true result."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"waited {seconds} s for {subject}"
        time.sleep(0.2)


@contextmanager
def stand_in(path: Path, options: ServerOptions) -> Iterator[StandIn]:
    """Start both servers; create a bucket, a queue, and a job role for `data/`, `runs/`, `logs/` and `code/` of the bucket."""
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
