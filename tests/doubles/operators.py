"""The functions behind the calls for operators, over a mesh with heavy actors in an emulated account."""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest

from asya.function.aws import clients
from asya.function.aws.telemetry import Telemetry
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.protocol.job_runs import logs_prefix
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.tasks import Tasks
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.gateway_functions import recorded_event, signed_by
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, heavy_world
from tests.doubles.log_lines import FakeLogs

OSCAR = {"userArn": "arn:aws:iam::123456789012:user/oscar", "userId": "AIDAOSCAR"}
ALICE = {"userArn": "arn:aws:iam::123456789012:user/alice", "userId": "AIDAALICE"}
RUN = "asya.flights.clean.0000000001"
NOW = datetime.now(UTC)


@dataclass
class OperatorCalls:
    """The calls of one function, and what the mesh has written.

    Attributes:
        build: builds the function's routes.
    """

    world: HeavyWorld
    build: Callable[..., Any]
    function: str
    logs: FakeLogs

    def get(self, path: str, iam: dict[str, str] = OSCAR) -> tuple[int, Any]:
        """GET a path with its query; return the status and the JSON of the answer."""
        bare, _, query = path.partition("?")
        event = signed_by(recorded_event("read-task"), iam)
        context = event["requestContext"]
        context |= {"http": context["http"] | {"method": "GET", "path": bare}}
        event |= {"rawPath": bare, "pathParameters": None, "queryStringParameters": dict(parse_qsl(query)) or None}
        own = HttpServices(self.world.services_of(self.function).settings, given_telemetry=Telemetry("flights", "test"))
        response = answer(event, self.build(own), NOW, own.telemetry.log)
        return response["statusCode"], json.loads(response["body"])

    def pages(self, path: str) -> Iterator[list[dict[str, Any]]]:
        """GET all pages of a list."""
        code, page = self.get(path)
        assert code == 200, page
        yield page["items"]
        while cursor := page.get("next_cursor"):
            code, page = self.get(f"{path}{'&' if '?' in path else '?'}cursor={cursor}")
            assert code == 200, page
            yield page["items"]

    def report(self, events: Sequence[Any]) -> None:
        """Record reports on tasks."""
        store = DynamoTaskStore(clients.dynamodb(), "asya-flights-tasks", TABLE.retention.tasks)
        Tasks(store, print, threaded=False).report(list(events), NOW, may_create=True)

    def log(self, function: str, seconds: float, message: object) -> None:
        """Write a line of a function, this many seconds before now."""
        self.logs.write(function, NOW - timedelta(seconds=seconds), message)

    def upload(self, text: str, worker: str = "SPARK_DRIVER", name: str = "stderr.gz", number: int = 1) -> None:
        """Upload a log of a worker, as EMR Serverless does."""
        key = f"{logs_prefix('clean', number)}applications/00app/jobs/run1/{worker}/{name}"
        self.world.s3.put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(text.encode()))


@contextmanager
def operator_calls(
    monkeypatch: pytest.MonkeyPatch, build: Callable[..., Any], function: str, table: MeshTable = TABLE
) -> Iterator[OperatorCalls]:
    """The calls of one function in a new account, in whose mesh Oscar is the operator."""
    from msgspec.structs import replace

    with heavy_world(monkeypatch, replace(table, operators=(OSCAR["userArn"],))) as world:
        create_tasks_table(clients.dynamodb(), "asya-flights-tasks")
        logs = FakeLogs("flights")
        monkeypatch.setattr(clients, "logs", lambda: logs)
        yield OperatorCalls(world, build, function, logs)
