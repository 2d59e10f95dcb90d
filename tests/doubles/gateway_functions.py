"""The gateway's functions over an emulated table and queues, called with recorded events of API Gateway."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from asya.api_call import ApiCall
from asya.function.aws import clients
from asya.function.aws.settings import Settings, load_settings
from asya.function.aws.telemetry import Telemetry, Traces
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.call_table import CALLS
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api import build_api
from asya.gateway.operations.wiring import build_operations
from asya.gateway.streams.routes import stream_routes
from asya.protocol import names
from asya.protocol.events import EventResult
from asya.protocol.mesh_table import Actor, MeshTable, encode_table
from asya.protocol.mesh_table import Gateway as GatewayTable
from asya.protocol.pause import Pause
from asya.protocol.times import format_time
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.received_reports import read_events
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.streams import FakeClock
from tests.doubles.tasks import at
from tests.paths import PROJECT

EVENTS = PROJECT / "events" / "api-gateway"
QUEUES = "https://sqs.us-east-1.amazonaws.com/123456789012/"
ALICE = {"userArn": "arn:aws:iam::123456789012:user/alice", "userId": "AIDAALICE"}
ISSUER, JWT_HOST = "https://login.example.com/", "f6g7h8i9j0.execute-api.us-east-1.amazonaws.com"
ADMIN = {"userArn": "arn:aws:sts::123456789012:assumed-role/Admin/x", "userId": "AROAADMIN:x"}
BOB = {"userArn": "arn:aws:iam::123456789012:user/bob", "userId": "AIDABOB"}
MESH = MeshTable(
    namespace="flights",
    actors={
        "inspect-dataset": Actor(kind="handler"),
        "publish-report": Actor(kind="handler"),
        "approve-report": Actor(kind="pause", pause=Pause(callback=True)),
        "x-sink": Actor(kind="crew"),
    },
    gateway=GatewayTable(token_calls=("tasks", "tools", "mcp", "a2a", "streams")),
)

Event = dict[str, Any]


def recorded_event(name: str) -> Event:
    """Load a recorded event of API Gateway."""
    event: Event = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def call_of(event: Event) -> ApiCall:
    """Return the call of an event."""
    method, path = event["requestContext"]["http"]["method"], event["rawPath"]
    matches = [call for call in CALLS if call.method == method and call.parameters(path) is not None]
    return min(matches, key=lambda call: call.variables)


def signed_by(event: Event, iam: dict[str, str] | None) -> Event:
    """Return an event with another IAM caller, or unsigned."""
    context = {name: value for name, value in event["requestContext"].items() if name != "authorizer"}
    return event | {"requestContext": context | ({"authorizer": {"iam": iam}} if iam else {})}


def with_token(event: Event, subject: str, issuer: str = ISSUER, **claims: object) -> Event:
    """Return an event of the JWT API, with a token that API Gateway has checked."""
    token_claims = {"iss": issuer, "sub": subject, **claims}
    parts = (json.dumps({"alg": "RS256", "kid": "1"}), json.dumps(token_claims), "signature")
    token = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    context = event["requestContext"] | {"authorizer": {"jwt": {"claims": _as_text(token_claims), "scopes": None}}}
    context |= {"apiId": JWT_HOST.partition(".")[0], "domainName": JWT_HOST}
    return event | {"requestContext": context, "headers": event["headers"] | {"authorization": f"Bearer {token}"}}


def _as_text(claims: dict[str, object]) -> dict[str, str]:
    """Convert claims to text as API Gateway does; lists become one text in brackets."""
    return {
        name: f"[{' '.join(map(str, value))}]" if isinstance(value, list) else str(value)
        for name, value in claims.items()
    }


def with_body(event: Event, body: object = None, **query: str) -> Event:
    """Return an event with another body or query, without its idempotency key."""
    headers = {name: value for name, value in event["headers"].items() if name != "idempotency-key"}
    raw = body if isinstance(body, str) else json.dumps(body if body is not None else {})
    return event | {"headers": headers, "body": raw, "queryStringParameters": query or event["queryStringParameters"]}


def route_event(route: str, iam: dict[str, str] | None = None, body: object = None, **parameters: str) -> Event:
    """Build an event of a route such as `GET /api/v1/mesh/{id}`; other parameters go to the query."""
    method, _, template = route.partition(" ")
    path_parameters = {name: value for name, value in parameters.items() if f"{{{name}}}" in template}
    query = {name: value for name, value in parameters.items() if name not in path_parameters}
    path = template
    for name, value in path_parameters.items():
        path = path.replace(f"{{{name}}}", value)
    event = signed_by(recorded_event("read-task"), iam or ALICE)
    context = event["requestContext"]
    context |= {"http": context["http"] | {"method": method, "path": path}, "routeKey": route}
    return event | {
        "routeKey": route,
        "rawPath": path,
        "pathParameters": path_parameters or None,
        "queryStringParameters": query or None,
        "body": body if isinstance(body, str) else json.dumps(body) if body is not None else None,
    }


def read_task_event(task_id: str, iam: dict[str, str] | None = None) -> Event:
    event = recorded_event("read-task")
    path = f"/api/v1/mesh/{task_id}"
    context = event["requestContext"] | {"http": event["requestContext"]["http"] | {"path": path}}
    event |= {"rawPath": path, "pathParameters": {"id": task_id}, "requestContext": context}
    return signed_by(event, iam) if iam else event


@dataclass
class Gateway:
    """The gateway's functions over one table and the actors' queues."""

    mesh: MeshTable
    environ: dict[str, str]
    traces: Traces | None = None

    def api(self, event: Event, now: datetime | None = None) -> tuple[int, Any]:
        return self._call(build_api, event, now or at(0))

    def operations(self, event: Event, now: datetime | None = None) -> tuple[int, Any]:
        return self._call(build_operations, event, now or at(0))

    def write_reports(self, reports: Sequence[Event], now: datetime | None = None) -> list[int]:
        """Write reports as the consumer of the report queues does, and return the status of each."""
        writer = StoredTasks(self._services()).writer
        events = read_events(json.dumps(reports).encode())
        assert not any(isinstance(event, EventResult) for event in events), events
        return [result.status for result in writer.write(events, now or at(0), may_create=True)]

    def stream(self, event: Event, now: datetime | None = None) -> tuple[int, Any]:
        """Call the stream function with a clock that advances while it sleeps."""
        clock = FakeClock(((now or at(0)) - at(0)).total_seconds())
        return self._call(stream_routes, event, now or at(0), clock)

    def call_function(self, function: str, event: Event) -> tuple[int, Any]:
        """Call a function by its name."""
        functions = {
            names.GATEWAY_API: self.api,
            names.GATEWAY_STREAM: self.stream,
            names.OPERATIONS: self.operations,
        }
        return functions[function](event)

    def messages(self, actor: str = "inspect-dataset") -> list[Any]:
        url = QUEUES + names.queue_name("flights", actor)
        received = clients.sqs().receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in received.get("Messages", [])]

    def _services(self, environment: Environment = REAL) -> HttpServices:
        settings = settings_with(self.environ, self.mesh)
        return HttpServices(settings, environment, Telemetry("flights", "test", self.traces))

    def _call(self, build: Any, event: Event, now: datetime, environment: Environment = REAL) -> tuple[int, Any]:
        own = self._services(environment)
        response = answer(event, build(own), now, own.telemetry.log)
        own.telemetry.flush()
        if "body" not in response:
            return response["statusCode"], None
        if response["headers"]["content-type"] == "text/event-stream":
            return response["statusCode"], response["body"]
        assert response["headers"]["content-type"] == "application/json"
        return response["statusCode"], json.loads(response["body"])


def settings_with(environ: dict[str, str], mesh: MeshTable) -> Settings:
    (Path(environ["LAMBDA_TASK_ROOT"]) / "mesh.json").write_bytes(encode_table(mesh))
    return load_settings(environ)


@contextmanager
def emulated_gateway(folder: Path) -> Iterator[Gateway]:
    """Start a gateway over its own emulated table and queues; `folder` holds its mesh."""
    environ = {
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "LAMBDA_TASK_ROOT": str(folder),
        "ASYA_ACTOR": "x-gateway-api",
        "ASYA_BUCKET": "asya-flights-123456789012-us-east-1",
        "ASYA_DATA_URI": "s3://asya-flights-123456789012-us-east-1/data/",
        "ASYA_RESULTS_URI": "s3://asya-flights-123456789012-us-east-1/results/",
        "ASYA_QUEUE_URL_PREFIX": QUEUES,
    }
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name, value in environ.items():
            patch.setenv(name, value)
        for kind in ("tasks", "sink", "pending", "breaker"):
            create_tasks_table(clients.dynamodb(), f"asya-flights-{kind}")
        clients.s3().create_bucket(Bucket=environ["ASYA_BUCKET"])
        for actor in (
            "inspect-dataset",
            "publish-report",
            names.ENDS,
            "inspect-dataset-dlq",
            "publish-report-dlq",
            "x-sink-dlq",
            "x-sink",
        ):
            clients.sqs().create_queue(QueueName=names.queue_name("flights", actor))
        environ |= {"ASYA_HEARTBEATS": "on"}
        yield Gateway(MESH, environ)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with emulated_gateway(tmp_path) as gateway:
        yield gateway


@pytest.fixture(autouse=True, scope="module")
def module_clients() -> Iterator[None]:
    """Cache the clients per module, because creating them is slow; other modules get new ones."""
    for client in (clients.sqs, clients.dynamodb, clients.s3, clients.logs, clients.cloudwatch):
        client.cache_clear()
    yield
    for client in (clients.sqs, clients.dynamodb, clients.s3, clients.logs, clients.cloudwatch):
        client.cache_clear()


def report(gateway: Gateway, task_id: str, status: str, seconds: float = 0.0, **more: Any) -> None:
    """Report on a task through the report queues."""
    data = {"route": {"prev": [], "curr": "inspect-dataset", "next": []}} | more.pop("data", {})
    event = {"id": task_id, "status": status, "at": format_time(at(seconds)), "data": data} | more
    assert gateway.write_reports([event], at(seconds)) == [204]
