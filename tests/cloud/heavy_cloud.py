"""A mesh of heavy actors on a local cloud, with the calls and faults of load tests."""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import psutil
from botocore.config import Config

from asya.protocol import names
from asya_local.account import read_keys, read_secret
from asya_local.authentication.admission import SECRET_HEADER
from asya_local.processes import cloud_processes
from asya_local.state_folder import LocalConnection, StateFolder
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.environment import environment
from tests.doubles import emr_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_PHASES = ("succeeded/", "failed/", "canceled/", "sump/")


@dataclass(frozen=True)
class HeavyCloud:
    """The deployed mesh `heavy`."""

    cloud: DeployedCloud

    @property
    def folder(self) -> StateFolder:
        return StateFolder.at(self.cloud.state)

    @property
    def namespace(self) -> str:
        return self.cloud.mesh.connection.namespace

    def client(self, service: str) -> Any:
        """A boto3 client with the deployer's key, for calls that the operator may not make."""
        return self.cloud.client(service)

    def send(self, ids: Sequence[str], *route: str) -> None:
        """Sends an envelope for each id in a burst; the payload holds the index of the id."""
        self.send_all({name: {"n": n} for n, name in enumerate(ids)}, *route)

    def send_all(self, payloads: Mapping[str, Any], *route: str) -> None:
        """Sends an envelope for each id and payload in a burst."""
        sqs = self.cloud.mesh.connection.sqs()
        url = sqs.get_queue_url(QueueName=names.queue_name(self.namespace, route[0]))["QueueUrl"]
        hops = {"prev": [], "curr": route[0], "next": list(route[1:])}
        bodies = [json.dumps({"id": name, "route": hops, "payload": payload}) for name, payload in payloads.items()]
        for start in range(0, len(bodies), 10):
            chunk = bodies[start : start + 10]
            entries: Any = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(chunk)]
            assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")

    def end_counts(self, prefix: str) -> Counter[str]:
        """Counts the objects of x-sink and x-sump for each id with this prefix."""
        connection = self.cloud.mesh.connection
        pages = connection.s3().get_paginator("list_objects_v2")
        counts: Counter[str] = Counter()
        for phase in _PHASES:
            folder = f"{connection.results.prefix}{phase}{prefix}"
            for page in pages.paginate(Bucket=connection.results.bucket, Prefix=folder):
                counts.update(
                    entry["Key"].rpartition("/")[2].removesuffix(".json") for entry in page.get("Contents", [])
                )
        return counts

    def result_payloads(self, ids: Iterable[str]) -> list[Any]:
        """Reads the payloads of succeeded envelopes, in the order of the ids."""

        def payload(envelope_id: str) -> Any:
            task = self.cloud.wait_for_end(envelope_id)
            assert task.status == "succeeded", (envelope_id, task)
            body = self.cloud.mesh.fetch(task.result_uri or "")
            return json.loads(body or b"{}")["payload"]

        with environment().threads(4) as pool:
            return list(pool.map(payload, ids))

    def wait_for_ends(self, ids: Sequence[str], prefix: str, *, reconciling: bool = False) -> Counter[str]:
        """Waits for the ends of all envelopes and counts them by id.

        `reconciling` also runs the reconciler every five seconds, in place of its schedule.
        """
        last_sweep = environment().monotonic()

        def poll() -> Counter[str] | None:
            nonlocal last_sweep
            if reconciling and environment().monotonic() - last_sweep > 5:
                self.reconcile()
                last_sweep = environment().monotonic()
            counts = self.end_counts(prefix)
            return counts if len(counts) >= len(ids) else None

        return until(poll, f"{len(ids)} envelopes to end; {len(self.end_counts(prefix))} had ended at the start")

    def reconcile(self) -> None:
        """Runs the reconciler once."""
        self.cloud.run_scheduled(names.RECONCILE)

    def runs(self, actor: str = "", *, after: datetime = LONG_AGO) -> list[dict[str, Any]]:
        """Lists the job runs of an actor, or of all actors, oldest first.

        Args:
            actor: the actor; empty for all.
            after: only runs that were created after this time: one page instead of one for each 50 runs.
        """
        key = read_keys(self.folder.keys)["root"]
        emr = boto3.client(
            "emr-serverless",
            endpoint_url=self._local.emr_endpoint_url,
            region_name=self._local.region,
            aws_access_key_id=key.access_key,
            aws_secret_access_key=key.secret_key,
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 10}
            ),  # the limit of ListJobRuns is one call a second
        )
        application = emr.list_applications()["applications"][0]["id"]
        pages = emr.get_paginator("list_job_runs").paginate(applicationId=application, createdAtAfter=after)
        runs: list[dict[str, Any]] = [dict(run) for page in pages for run in page["jobRuns"]]
        prefix = f"asya.{self.namespace}.{actor}." if actor else f"asya.{self.namespace}."
        return [run for run in reversed(runs) if run["name"].startswith(prefix)]

    def inject_faults(self, **faults: float) -> None:
        """Sets the faults of the stand-in; a call without arguments removes all."""
        emr_faults.inject(self.folder.emr, **faults)

    def kill_run(self, run_id: str) -> bool:
        """Kills the driver of a run; returns False if it has none."""
        return bool(self._post_to_stand_in(f"runs/{run_id}/kill")["killed"])

    def dead_letters(self) -> dict[str, int]:
        """Counts the dead letters by actor; actors without any are left out."""
        return self.cloud.dead_letters()

    def received_count(self, actor: str) -> int:
        """Counts the messages that the actor's function has received, redeliveries included, except in batches that raised.

        It reads the lines of MiniStack, because the last log lines of an invocation may be lost on a busy machine.
        """
        queue = names.queue_name(self.namespace, actor)
        batches = re.finditer(
            rf"processed (\d+) SQS messages from {re.escape(queue)}(?: \((\d+) partial failures\))?$", self._log(), re.M
        )
        return sum(int(batch[1]) + int(batch[2] or 0) for batch in batches)

    def retained(self) -> list[str]:
        """Lists the log lines about messages that functions have left on their queues.

        Those of the report queues do not count: a report comes again whenever the busy table did not answer in time.
        """
        marks = ("message kept on the queue", "partial failures)")
        reports = (f"Lambda {names.function_name(self.namespace, names.REPORTS)} ", f'"service":"{names.REPORTS}"')
        lines = [line for line in self._log().splitlines() if any(mark in line for mark in marks)]
        return [line for line in lines if not any(text in line for text in reports)]

    def workers(self, name: str) -> list[psutil.Process]:
        """The processes of a function."""
        function_name = names.function_name(self.namespace, name)
        workers = []
        for process in cloud_processes(self.folder):
            try:
                if process.environ().get("AWS_LAMBDA_FUNCTION_NAME") == function_name:
                    workers.append(process)
            except psutil.Error:
                continue
        return workers

    def kill_while_busy(self, name: str) -> None:
        """Kills the processes of a function while messages are in flight.

        The processes are stopped first, so that none finishes its messages between the check and the kill.
        """
        queue = names.queue_name(self.namespace, name)

        def poll() -> bool | None:
            processes = []
            for process in self.workers(name):
                process.send_signal(signal.SIGSTOP)
                processes.append(process)
            busy = bool(processes) and self.in_flight(queue) > 0
            for process in processes:
                process.send_signal(signal.SIGKILL if busy else signal.SIGCONT)
            return busy or None

        until(poll, f"{name} to be at work")

    def in_flight(self, queue: str) -> int:
        """Counts the in-flight messages of a queue."""
        sqs = self.client("sqs")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return int(counts["ApproximateNumberOfMessagesNotVisible"])

    def shorten_visibility_timeout(self, *actors: str, seconds: int = 10) -> None:
        """Shortens the visibility timeout, so that the messages of killed processes return soon."""
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
        headers = {SECRET_HEADER: read_secret(self.folder.secret)}
        request = urllib.request.Request(
            f"{self._local.emr_endpoint_url}/_local/{path}", method="POST", headers=headers
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            body: dict[str, Any] = json.loads(response.read())
            return body

    def _log(self) -> str:
        return (self.folder.logs / "ministack.log").read_text(errors="replace")
