"""Runs a function of the mesh in this process, with fake queues, buckets and a gateway that fail on demand."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, MeshTable
from asya.sidecar.lambdas.services import Services
from asya.testing.dynamo.queries import new_tables
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3, MemorySqs
from asya.testing.services.queues import Message
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.envelopes import mesh
from tests.doubles.gateway import FakeGateway, running_gateway
from tests.doubles.task_states import StateReads, TaskStates
from tests.paths import PROJECT

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EVENTS = PROJECT / "events" / "lambda"
BUCKET = "asya-shop-123456789012-eu-west-1"


def recorded(name: str) -> dict[str, Any]:
    """An event of `events/lambda/`."""
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def sqs_event(*bodies: bytes | str, receive_counts: Mapping[int, int] | None = None) -> dict[str, Any]:
    """An SQS event in the recorded form with these bodies; the n-th message has the id `message-n`."""
    template = recorded("sqs-batch")["Records"][0]
    counts = receive_counts or {}
    return {"Records": [_record(template, number, body, counts.get(number, 1)) for number, body in enumerate(bodies)]}


def _record(template: dict[str, Any], number: int, body: bytes | str, count: int) -> dict[str, Any]:
    return template | {
        "messageId": f"message-{number}",
        "receiptHandle": f"receipt-{number}",
        "body": body if isinstance(body, str) else body.decode("utf-8", "surrogatepass"),
        "attributes": template["attributes"] | {"ApproximateReceiveCount": str(count)},
    }


@dataclass
class MeshWorld:
    """The queues, buckets, tables and gateway of one function, with everything that it sent and wrote.

    Attributes:
        states: the states of tasks by id; other tasks are `unknown`.
        state_reads: the calls of pre-flights.
    """

    sqs: MemorySqs
    s3: MemoryS3
    gateway: FakeGateway
    monkeypatch: pytest.MonkeyPatch
    handlers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    dynamodb: MemoryDynamo = field(
        default_factory=lambda: MemoryDynamo(new_tables(MeshTable(namespace="shop", actors={})))
    )

    def __post_init__(self) -> None:
        self.states = TaskStates(self.dynamodb)
        self.state_reads = StateReads(self.dynamodb)

    def services(self, actor: str, table: MeshTable | None = None, *, reporting: bool = True) -> Services:
        """The services of an actor's function."""
        return Services(
            Settings(
                table=table or mesh(),
                actor=actor,
                region="eu-west-1",
                heartbeats=True,
                bucket=BUCKET,
                data_uri=f"s3://{BUCKET}/data/",
                results_uri=f"s3://{BUCKET}/results/",
                queue_url_prefix="https://sqs.eu-west-1.amazonaws.com/123456789012/",
                gateway_url=self.gateway.url if reporting else None,
            )
        )

    def light(
        self, handler: Callable[[Any], Any], *, actor: str = "infer", reporting: bool = True, **spec: Any
    ) -> Services:
        """The services of a light actor whose handler is a function of the test."""
        self.monkeypatch.setattr(f"{__name__}.handler_under_test", handler)
        name = spec.pop("name", f"{__name__}.handler_under_test")
        others = spec.pop("others", {})
        actors = {actor: Actor(**({"kind": "handler", "handler": name, "timeout": 60.0} | spec))} | others
        return self.services(actor, mesh(actors), reporting=reporting)

    def sent(self, actor: str) -> list[Envelope]:
        """The envelopes sent to an actor."""
        return [message.envelope for message in self.messages(actor)]

    def messages(self, actor: str) -> list[Message]:
        """The messages sent to an actor."""
        return self.sqs.sent[f"asya-shop-{actor}"]

    @property
    def targets(self) -> list[str]:
        """The target actor of each sent message, in alphabetical order."""
        counts = {queue.removeprefix("asya-shop-"): len(messages) for queue, messages in self.sqs.sent.items()}
        return sorted(actor for actor, count in counts.items() for _ in range(count))


def handler_under_test(payload: Any) -> Any:
    """The handler; each test replaces it."""
    raise NotImplementedError


@contextmanager
def mesh_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    """A world whose queues, buckets and tables are in memory."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with running_gateway() as gateway:
        world = MeshWorld(
            MemorySqs(take_reports=gateway.take), MemoryS3(bucket=Bucket(name=BUCKET)), gateway, monkeypatch
        )
        monkeypatch.setattr(clients, "sqs", lambda: world.sqs)
        monkeypatch.setattr(clients, "s3", lambda: world.s3)
        monkeypatch.setattr(clients, "dynamodb", lambda: world.dynamodb)
        monkeypatch.setattr(clients, "dynamodb_without_waiting", lambda: world.state_reads)
        yield world


@contextmanager
def emulated_table(kind: str) -> "Iterator[DynamoDBClient]":
    """One of the mesh's tables in moto, with real conditions; tests share it, because its creation is slow."""
    with mock_aws():
        session = boto3.Session("testing", "testing", region_name="eu-west-1")
        client = session.client("dynamodb")
        create_tasks_table(client, f"asya-shop-{kind}")
        yield client


def empty_table(client: "DynamoDBClient", kind: str) -> None:
    """Delete all items of a table."""
    table = f"asya-shop-{kind}"
    for item in client.scan(TableName=table)["Items"]:
        client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})


def batch_failures(answer: Mapping[str, Any]) -> list[str]:
    """The ids of the messages that a partial batch failure keeps on the queue."""
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]
