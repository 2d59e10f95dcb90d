"""A mesh with two heavy actors on moto and a double of EMR Serverless: the heavy path in one process."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from asya.function.aws import clients
from asya.function.aws.settings import Settings, SparkSettings
from asya.heavy.aws.emr_serverless import EmrServerless
from asya.heavy.lambdas.complete import Completion
from asya.heavy.lambdas.dispatch import Dispatcher
from asya.heavy.lambdas.enqueue import Enqueuer
from asya.heavy.lambdas.reconcile import Reconciler
from asya.heavy.lambdas.services import SparkServices
from asya.protocol.events import PartialEvent, Report, TaskEvent
from asya.protocol.job_runs import Manifest, attempts_prefix
from asya.protocol.mesh_table import Actor, Batch, MeshTable, Policy, Resiliency, SparkApplication, SparkJob
from asya.sidecar.lambdas.services import Services
from asya.tasks.task_state import StateQuery, TaskState
from tests.doubles.emulated_aws import emulated_aws

BUCKET = "asya-flights-bucket"
APPLICATION = "00app"
REGION = "us-east-1"
QUEUES = ("clean", "stats", "publish", "x-sink", "x-sump", "x-dispatch", "x-completion")

TABLE = MeshTable(
    namespace="flights",
    actors={
        "clean": Actor(
            kind="spark",
            spark=SparkJob(job="flights.clean"),
            timeout=60.0,
            batch=Batch(size=3),
            resiliency=Resiliency(policies={"default": Policy(max_attempts=2, initial_delay=0.0)}),
        ),
        "stats": Actor(kind="spark", spark=SparkJob(job="flights.stats"), batch=Batch(size=100)),
        "publish": Actor(kind="handler", handler="flights.publish"),
    },
    spark=SparkApplication(start_per_second=0.01, start_burst=25),
)


class EmrApi:
    """A double of EMR Serverless: idempotent tokens, and one refusal for each code in `refusals`.

    It no longer knows the runs in `forgotten`.
    """

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.by_token: dict[str, str] = {}
        self.refusals: list[str] = []
        self.canceled: list[str] = []
        self.forgotten: set[str] = set()
        self.calls = 0

    def start_job_run(self, **request: Any) -> dict[str, str]:
        self.calls += 1
        if self.refusals:
            code = self.refusals.pop(0)
            raise ClientError({"Error": {"Code": code, "Message": "as requested"}}, "StartJobRun")
        token = request["clientToken"]
        if token not in self.by_token:
            job_run_id = f"run{len(self.runs) + 1}"
            self.by_token[token] = job_run_id
            self.runs[job_run_id] = {
                "name": request["name"],
                "state": "SCHEDULED",  # it has capacity
                "stateDetails": "",
                "request": request,
            }
        return {"jobRunId": self.by_token[token]}

    def get_job_run(self, applicationId: str, jobRunId: str) -> dict[str, Any]:  # noqa: N803
        self._check_known(jobRunId, "GetJobRun")
        return {"jobRun": {key: value for key, value in self.runs[jobRunId].items() if key != "request"}}

    def cancel_job_run(self, applicationId: str, jobRunId: str) -> None:  # noqa: N803
        self._check_known(jobRunId, "CancelJobRun")
        self.canceled.append(jobRunId)

    def get_paginator(self, _action: str) -> Any:
        runs = [{"id": job_run_id, "name": run["name"]} for job_run_id, run in self.runs.items()]
        return SimpleNamespace(paginate=lambda **_: [{"jobRuns": runs}])

    def _check_known(self, job_run_id: str, action: str) -> None:
        if job_run_id in self.forgotten or job_run_id not in self.runs:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "no such run"}}, action)


@dataclass
class RecordingGateway:
    """Records reports and knows the canceled tasks."""

    events: list[Report] = field(default_factory=list)
    canceled: set[str] = field(default_factory=set)
    pauses: dict[str, int] = field(default_factory=dict)

    def send(self, reports: Any) -> tuple[int, str]:
        """As `ReportSender.send`."""
        for each in reports:
            is_partial = b'"type":"fly"' in each.report.text
            self.events.append(msgspec.json.decode(each.report.text, type=PartialEvent if is_partial else TaskEvent))
            if each.receipt is not None:
                each.receipt.resolve()
        return 0, ""

    def ask(self, queries: Sequence[StateQuery], _now: datetime) -> dict[str, TaskState]:
        """As `StateQueries.ask`."""
        return {
            query.id: TaskState(
                id=query.id,
                status="canceled" if query.id in self.canceled else "running",
                pause_epoch=self.pauses.get(query.id),
            )
            for query in queries
        }


class TimedContext:
    """Lambda's context; the first `answers` queries return plenty of time, later ones none."""

    def __init__(self, answers: int = 1_000_000) -> None:
        self.answers = answers

    def get_remaining_time_in_millis(self) -> int:
        self.answers -= 1
        return 600_000 if self.answers >= 0 else 1_000


class HeavyWorld:
    """The mesh, with methods that run its functions."""

    def __init__(self, table: MeshTable) -> None:
        self.emr = EmrApi()
        self.gateway = RecordingGateway()
        self.sqs = clients.sqs()
        self.s3 = clients.s3()
        self.dynamodb = clients.dynamodb()
        self.table = table
        self.services = self.services_of("x-dispatch")

    def services_of(self, actor: str) -> SparkServices:
        """The services of one function."""
        settings = Settings(
            table=self.table,
            actor=actor,
            region=REGION,
            heartbeats=True,
            bucket=BUCKET,
            data_uri=f"s3://{BUCKET}/data/",
            results_uri=f"s3://{BUCKET}/results/",
            queue_url_prefix=f"https://sqs.{REGION}.amazonaws.com/123456789012/",
            gateway_url="https://gateway",
            spark=SparkSettings(
                application_id=APPLICATION,
                role_prefix="arn:aws:iam::123456789012:role/",
                entry_point="s3://assets/entry.py",
                py_files=("s3://assets/asya.zip",),
                access_policy_prefix="arn:aws:iam::123456789012:policy/",
            ),
        )
        base = Services(settings)
        base.__dict__["state_queries"] = self.gateway
        base.report_sender.send = self.gateway.send  # type: ignore[method-assign]
        services = SparkServices(base)
        services.__dict__["job_runs"] = EmrServerless(self.emr, application_id=APPLICATION)  # type: ignore[arg-type]
        return services

    def send(self, envelope_id: str, payload: Any = None, *, actor: str = "clean", **more: Any) -> None:
        """Puts an envelope on an actor's queue."""
        at = "2026-01-01T00:00:00Z"
        status = {"phase": "pending", "created_at": at, "updated_at": at, **more.pop("status", {})}
        envelope = {
            "id": envelope_id,
            "route": {"prev": [], "curr": actor, "next": ["publish"]},
            "status": status,
            "payload": payload,
            **more,
        }
        self.put(actor, json.dumps(envelope))

    def put(self, queue: str, body: str) -> None:
        """Puts a message on a queue."""
        self.sqs.send_message(QueueUrl=self._url(queue), MessageBody=body)

    def receive(self, queue: str) -> dict[str, Any]:
        """The event that an event source mapping would pass; deletes the messages."""
        answer = self.sqs.receive_message(
            QueueUrl=self._url(queue), MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
        )
        messages = answer.get("Messages", [])
        for message in messages:
            self.sqs.delete_message(QueueUrl=self._url(queue), ReceiptHandle=message["ReceiptHandle"])
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": message["Attributes"],
                }
                for message in messages
            ]
        }

    def bodies(self, queue: str) -> list[dict[str, Any]]:
        """The bodies of all messages on a queue, sorted by id; deletes the messages."""
        bodies: list[dict[str, Any]] = []
        while batch := self.receive(queue)["Records"]:
            bodies += [json.loads(record["body"]) for record in batch]
        return sorted(bodies, key=lambda body: body.get("id", ""))

    def enqueue(self, actor: str = "clean") -> dict[str, Any]:
        """Runs the actor's sidecar on its messages; returns the event for a redelivery."""
        event = self.receive(actor)
        assert Enqueuer(self.services_of(actor)).process(event) == {"batchItemFailures": []}
        return event

    def dispatch(self) -> int:
        """Runs the dispatcher on its due requests; returns their number."""
        event = self.receive("x-dispatch")
        assert Dispatcher(self.services_of("x-dispatch")).process(event) == {"batchItemFailures": []}
        return len(event["Records"])

    def complete(self, context: TimedContext | None = None) -> int:
        """Runs the completion on its messages; returns their number."""
        event = self.receive("x-completion")
        completion = Completion(self.services_of("x-completion"), context or TimedContext())
        assert completion.process(event) == {"batchItemFailures": []}
        return len(event["Records"])

    def reconcile(self) -> None:
        """Runs a sweep of the reconciler."""
        Reconciler(self.services_of("x-reconcile")).sweep()

    def set_state(self, job_run_id: str, state: str, *, details: str = "", event: bool = True) -> None:
        """Sets the state of a job run, and sends its event unless `event` is false."""
        run = self.emr.runs[job_run_id]
        run |= {"state": state, "stateDetails": details}
        detail = {"applicationId": APPLICATION, "jobRunId": job_run_id, "jobRunName": run["name"], "state": state}
        if event:
            body = {
                "source": "aws.emr-serverless",
                "detail-type": "EMR Serverless Job Run State Change",
                "detail": detail,
            }
            self.put("x-completion", json.dumps(body))

    def manifest(self, number: int, actor: str = "clean") -> Manifest:
        """The manifest of a run."""
        manifest = self.services.manifests.read(actor, number)
        assert manifest is not None
        return manifest

    def write_results(
        self,
        number: int,
        results: list[list[dict[str, Any]]],
        *,
        actor: str = "clean",
        attempt: str = "a1",
        end: str | None = "commit",
        error: dict[str, Any] | None = None,
        at_work: int | None = -1,
        stage: str = "working",
        unreached: int | None = None,
    ) -> None:
        """Writes the output of a job: the lines of each member, two members in each part, then a commit or journal."""
        folder = f"{attempts_prefix(actor, number)}{attempt}/"
        parts = []
        for index in range(0, len(results), 2):
            lines = [line for result in results[index : index + 2] for line in result]
            body = "".join(json.dumps(line) + "\n" for line in lines).encode()
            name = f"part-{index // 2:06d}.jsonl"
            self.s3.put_object(Bucket=BUCKET, Key=folder + name, Body=body)
            last = min(index + 1, len(results) - 1)
            parts.append({"file": name, "first": index, "last": last, "lines": len(lines), "size": len(body)})
        content_base: dict[str, Any] = {"run_id": "r", "attempt": attempt, "parts": parts}
        if end == "commit":
            content = {**content_base, "finished_at": "2026-01-01T00:00:00Z", "error": error, "unreached": unreached}
            self.s3.put_object(Bucket=BUCKET, Key=f"{folder}commit.json", Body=json.dumps(content).encode())
        elif end == "journal":
            busy = len(results) if at_work == -1 else at_work
            at_work_now = [] if busy is None else [busy]
            content = {
                **content_base,
                "sequence": 4,
                "updated_at": "2026-01-01T00:00:00Z",
                "at_work": at_work_now,
                "started": len(results) + len(at_work_now),
                "stage": stage,
            }
            self.s3.put_object(Bucket=BUCKET, Key=f"{folder}journal-0.json", Body=json.dumps(content).encode())

    def reported_ids(self, status: str) -> list[str]:
        """The ids of the tasks that were reported with a status, sorted."""
        events = [event for event in self.gateway.events if isinstance(event, TaskEvent)]
        return sorted(event.id for event in events if event.status == status)

    def items(self, prefix: str) -> list[dict[str, Any]]:
        """The items of the pending table whose partition key has a prefix."""
        items = self.dynamodb.scan(TableName="asya-flights-pending")["Items"]
        return [item for item in items if item["pk"]["S"].startswith(prefix)]

    def _url(self, queue: str) -> str:
        return self.services.settings.queue_url(queue)


def done_result(index: int, *payloads: Any, **frame: Any) -> list[dict[str, Any]]:
    """The result lines of a member that succeeded."""
    head = {"index": index, "end": "done", "frames": len(payloads), "duration_ms": 5.0}
    return [head, *({"payload": payload, **frame} for payload in payloads)]


def failed_result(index: int, *payloads: Any, kind: str = "ValueError", message: str = "bad") -> list[dict[str, Any]]:
    """The result lines of a member whose job raised after these frames."""
    error = {"type": kind, "message": message, "mro": ["Exception"], "traceback": "…"}
    head = {"index": index, "end": "failed", "frames": len(payloads), "error": error}
    return [head, *({"payload": payload} for payload in payloads)]


@contextmanager
def heavy_world(monkeypatch: pytest.MonkeyPatch, table: MeshTable = TABLE) -> Iterator[HeavyWorld]:
    """A mesh with empty queues and tables."""
    with emulated_aws(monkeypatch, REGION):
        for queue in QUEUES:
            clients.sqs().create_queue(QueueName=f"asya-flights-{queue}")
        clients.s3().create_bucket(Bucket=BUCKET)
        for kind in ("pending", "sink"):
            clients.dynamodb().create_table(
                TableName=f"asya-flights-{kind}",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
                AttributeDefinitions=[
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
                BillingMode="PAY_PER_REQUEST",
            )
        yield HeavyWorld(table)
