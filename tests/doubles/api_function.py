"""The API function of the mesh `shop`, and the one of calls about the mesh, over an emulated account, for tests of single tasks."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api import build_api
from asya.gateway.operations.wiring import build_operations
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.tasks import Tasks
from tests.doubles.dynamo import create_fan_in_table, create_tasks_table
from tests.doubles.emulated_aws import emulated_aws
from tests.paths import PROJECT

EVENT = json.loads((PROJECT / "events" / "api-gateway" / "read-task.json").read_text())
QUEUES = "https://sqs.us-east-1.amazonaws.com/123456789012/"
BUCKET = "asya-shop-123456789012-us-east-1"
RESULTS = "results/"
ALICE = {"userArn": "arn:aws:iam::123456789012:user/alice", "userId": "AIDAALICE"}
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@contextmanager
def emulated_shop(monkeypatch: pytest.MonkeyPatch, *actors: str) -> Iterator[None]:
    """Create the mesh's tables, its bucket and the queues of these actors."""
    with emulated_aws(monkeypatch):
        for kind in ("tasks", "sink"):
            create_tasks_table(clients.dynamodb(), f"asya-shop-{kind}")
        create_fan_in_table(clients.dynamodb(), "asya-shop-fan-in")
        clients.s3().create_bucket(Bucket=BUCKET)
        for actor in actors:
            clients.sqs().create_queue(QueueName=f"asya-shop-{actor}")
        yield


ROLE = "AROASOMEFUNCTION:session"
"""The `SenderId` of a dead letter of the mesh."""


@dataclass
class ApiFunction:
    """The API function with its table, queues and bucket."""

    table: MeshTable
    environment: Environment = REAL
    now: datetime = NOW

    @property
    def settings(self) -> Settings:
        """The function's settings."""
        return Settings(
            table=self.table,
            actor="x-gateway-api",
            region="us-east-1",
            heartbeats=True,
            bucket=BUCKET,
            data_uri=f"s3://{BUCKET}/data/",
            results_uri=f"s3://{BUCKET}/{RESULTS}",
            queue_url_prefix=QUEUES,
        )

    @property
    def store(self) -> DynamoTaskStore:
        """The tasks table."""
        return DynamoTaskStore(clients.dynamodb(), "asya-shop-tasks", self.table.retention.tasks)

    @property
    def tasks(self) -> Tasks:
        """The mesh's tasks."""
        return Tasks(self.store, print, threaded=False)

    def call(self, task_id: str, call: str, body: object, iam: dict[str, str]) -> tuple[int, Any]:
        """POST to `/api/v1/mesh/{id}/{call}`; return the status code and the JSON of the response."""
        text = body if isinstance(body, str) else json.dumps(body)
        return self.post_to(f"/api/v1/mesh/{task_id}/{call}", {"id": task_id}, text, iam)

    def get(self, path: str, iam: dict[str, str]) -> tuple[int, Any]:
        """GET a path; return the status code and the JSON of the response."""
        return self.request("GET", path, {}, "", iam)

    def redrive(self, actor: str, message: bytes, iam: dict[str, str], **query: str) -> tuple[int, Any]:
        """POST a dead letter to `/api/v1/mesh/redrive`; return the status code and the JSON of the response."""
        event = {
            "queryStringParameters": {"actor": actor, "message_id": "m-1", "sender": ROLE} | query,
            "body": base64.b64encode(message).decode(),
            "isBase64Encoded": True,
        }
        return self.post_to("/api/v1/mesh/redrive", {}, "", iam, event)

    def post_to(
        self, path: str, parameters: dict[str, str], body: str, iam: dict[str, str], more: dict[str, Any] | None = None
    ) -> tuple[int, Any]:
        return self.request("POST", path, parameters, body, iam, more)

    def request(
        self,
        method: str,
        path: str,
        parameters: dict[str, str],
        body: str,
        iam: dict[str, str],
        more: dict[str, Any] | None = None,
    ) -> tuple[int, Any]:
        http = EVENT["requestContext"]["http"] | {"method": method, "path": path}
        context = EVENT["requestContext"] | {"http": http, "authorizer": {"iam": iam}}
        event = EVENT | {"rawPath": path, "pathParameters": parameters, "requestContext": context, "body": body}
        event |= more or {}
        telemetry = Telemetry("shop", "test")
        build = build_operations if path.startswith("/api/v1/operations/") else build_api
        routes = build(HttpServices(self.settings, self.environment, telemetry))
        response = answer(event, routes, self.now, telemetry.log)
        return response["statusCode"], json.loads(response["body"])

    def messages(self, actor: str) -> list[Any]:
        """Receive up to 10 messages of an actor's queue."""
        response = clients.sqs().receive_message(QueueUrl=f"{QUEUES}asya-shop-{actor}", MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in response.get("Messages", [])]
