"""A mesh of heavy actors on a local cloud, and what tests under load do with it."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import psutil
from botocore.config import Config

from asya.protocol import names
from asya_local.accounts import aws_client
from asya_local.connection import LocalConnection
from asya_local.keys import read_keys
from asya_local.processes import cloud_processes
from asya_local.state_folder import StateFolder
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.doubles import emr_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

TIMEOUT_SECONDS = 300.0
_PHASES = ("succeeded/", "failed/", "canceled/", "sump/")


@dataclass(frozen=True)
class HeavyCloud:
    """The mesh `heavy`, deployed."""

    cloud: DeployedCloud

    @property
    def folder(self) -> StateFolder:
        return StateFolder.at(self.cloud.state)

    @property
    def namespace(self) -> str:
        return self.cloud.mesh.connection.namespace

    def client(self, service: str) -> Any:
        """With the deployer's key, for what the operator may not do."""
        return aws_client(service, self._local.endpoint_url, read_keys(self.folder.keys)["deployer"])

    def send(self, ids: Sequence[str], *route: str) -> None:
        """Start a task for each id, in a burst; its payload is its place."""
        self.send_all({name: {"n": n} for n, name in enumerate(ids)}, *route)

    def send_all(self, payloads: Mapping[str, Any], *route: str) -> None:
        """Start a task for each id and its payload, in a burst."""
        sqs = self.cloud.mesh.connection.sqs()
        url = sqs.get_queue_url(QueueName=names.queue_name(self.namespace, route[0]))["QueueUrl"]
        ahead = {"prev": [], "curr": route[0], "next": list(route[1:])}
        bodies = [json.dumps({"id": name, "route": ahead, "payload": payload}) for name, payload in payloads.items()]
        for start in range(0, len(bodies), 10):
            some = bodies[start : start + 10]
            entries: Any = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(some)]
            assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")

    def end_counts(self, prefix: str) -> Counter[str]:
        """How many objects x-sink and x-sump wrote for each id that begins so."""
        connection = self.cloud.mesh.connection
        pages = connection.s3().get_paginator("list_objects_v2")
        found: Counter[str] = Counter()
        for phase in _PHASES:
            where = f"{connection.results.prefix}{phase}{prefix}"
            for page in pages.paginate(Bucket=connection.results.bucket, Prefix=where):
                found.update(
                    entry["Key"].rpartition("/")[2].removesuffix(".json") for entry in page.get("Contents", [])
                )
        return found

    def result_payloads(self, ids: Iterable[str]) -> list[Any]:
        """What succeeded with, in the order of the ids; the task's record says so too."""

        def payload(envelope_id: str) -> Any:
            task = until(lambda: self._ended(envelope_id), f"the report that {envelope_id} ended", TIMEOUT_SECONDS)
            assert task.status == "succeeded", (envelope_id, task)
            stored = self.cloud.mesh.fetch(task.result_uri or "")
            return json.loads(stored or b"{}")["payload"]

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(payload, ids))

    def _ended(self, envelope_id: str) -> Any:
        task = self.cloud.mesh.task(envelope_id)
        return task if task is not None and task.status in {"succeeded", "failed", "canceled"} else None

    def wait_for_ends(self, ids: Sequence[str], prefix: str, *, reconciling: bool = False) -> Counter[str]:
        """How often each has ended, once all have; the sweep of lost things is run now and then, as its schedule would."""
        last_sweep = time.monotonic()

        def look() -> Counter[str] | None:
            nonlocal last_sweep
            if reconciling and time.monotonic() - last_sweep > 5:
                self.reconcile()
                last_sweep = time.monotonic()
            found = self.end_counts(prefix)
            return found if len(found) >= len(ids) else None

        return until(look, f"{len(ids)} envelopes to end; there are {len(self.end_counts(prefix))}", TIMEOUT_SECONDS)

    def reconcile(self) -> None:
        """One sweep of the reconciler."""
        name = names.function_name(self.namespace, names.RECONCILE)
        answer = self.client("lambda").invoke(FunctionName=name, Payload=b"{}")
        assert "FunctionError" not in answer, answer["Payload"].read()

    def runs(self, actor: str) -> list[dict[str, Any]]:
        """The job runs of an actor, the oldest first."""
        key = read_keys(self.folder.keys)["root"]
        emr = boto3.client(
            "emr-serverless",
            endpoint_url=self._local.emr_endpoint_url,
            region_name=self._local.region,
            aws_access_key_id=key.access_key,
            aws_secret_access_key=key.secret_key,
            config=Config(retries={"mode": "standard", "total_max_attempts": 10}),  # ListJobRuns: one a second
        )
        application = emr.list_applications()["applications"][0]["id"]
        pages = emr.get_paginator("list_job_runs").paginate(applicationId=application)
        found: list[dict[str, Any]] = [dict(run) for page in pages for run in page["jobRuns"]]
        return [run for run in reversed(found) if run["name"].startswith(f"asya.{self.namespace}.{actor}.")]

    def inject_faults(self, **faults: float) -> None:
        """Inject faults into the stand-in; without any, remove all."""
        emr_faults.inject(self.folder.emr, **faults)

    def kill_run(self, run_id: str) -> bool:
        """Kill a run's driver; False if it has none."""
        return bool(self._post_to_stand_in(f"runs/{run_id}/kill")["killed"])

    def dead_letters(self) -> dict[str, int]:
        """The dead-letter queues with something in them."""
        sqs = self.client("sqs")
        found: dict[str, int] = {}
        for url in sqs.list_queues(QueueNamePrefix=f"asya-{self.namespace}-").get("QueueUrls", []):
            if url.endswith("-dlq"):
                count = self.cloud.message_count(url.rpartition("/")[2])
                found |= {url.rpartition("/")[2]: count} if count else {}
        return found

    def received_count(self, actor: str) -> int:
        """How many messages the actor's function was handed so far, redeliveries included."""
        return sum(int(sum(line["Received"])) for line in self._metrics() if _has_metric(line, actor, "Received"))

    def retained_count(self) -> int:
        """How many messages any function has put back so far."""
        return self._log().count("message kept on the queue")

    def workers(self, name: str) -> list[psutil.Process]:
        """The processes that carry out a function."""
        wanted = names.function_name(self.namespace, name)
        found = []
        for process in cloud_processes(self.folder):
            try:
                if process.environ().get("AWS_LAMBDA_FUNCTION_NAME") == wanted:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def kill_while_busy(self, name: str) -> None:
        """Kill the processes of a function while one of them has messages.

        They are stopped first: then whoever has messages cannot be done with them between the look and the kill.
        """
        queue = names.queue_name(self.namespace, name)

        def look() -> bool | None:
            stopped = []
            for process in self.workers(name):
                process.send_signal(signal.SIGSTOP)
                stopped.append(process)
            busy = bool(stopped) and self.in_flight(queue) > 0
            for process in stopped:
                process.send_signal(signal.SIGKILL if busy else signal.SIGCONT)
            return busy or None

        until(look, f"{name} to be at work", TIMEOUT_SECONDS)

    def in_flight(self, queue: str) -> int:
        """How many messages of a queue somebody has taken."""
        sqs = self.client("sqs")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessagesNotVisible"])

    def shorten_visibility_timeout(self, *actors: str, seconds: int = 10) -> None:
        """Have what a killed process held come again soon; on AWS that takes as long as the function may."""
        sqs = self.client("sqs")
        for actor in actors:
            url = sqs.get_queue_url(QueueName=names.queue_name(self.namespace, actor))["QueueUrl"]
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds)})

    @property
    def _local(self) -> LocalConnection:
        connection = LocalConnection.read(self.folder.connection)
        assert connection is not None
        return connection

    def _post_to_stand_in(self, path: str) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._local.emr_endpoint_url}/_local/{path}", method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def _log(self) -> str:
        return (self.folder.logs / "ministack.log").read_text(errors="replace")

    def _metrics(self) -> Iterator[dict[str, Any]]:
        for line in self._log().splitlines():
            if line.startswith('{"_aws"'):
                yield json.loads(line)


def _has_metric(line: dict[str, Any], actor: str, metric: str) -> bool:
    return line.get("actor") == actor and metric in line
