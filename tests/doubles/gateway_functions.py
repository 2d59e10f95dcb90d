"""The gateway's functions over an emulated table and queues, called with API Gateway's own events."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from asya.gateway.http.router import answer
from asya.gateway.lambdas import wiring
from asya.gateway.lambdas.api_groups import build_api
from asya.gateway.lambdas.wiring import build_ingest
from asya.gateway.streams import wiring as stream_wiring
from asya.gateway.streams.wiring import build_streams
from asya.messaging.aws import clients
from asya.messaging.aws.settings import Settings, load_settings
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import REAL, Environment
from asya.protocol import names
from asya.protocol.mesh_table import Actor, MeshTable, encode_table
from asya.protocol.times import format_time
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
        "x-sink": Actor(kind="crew"),
    },
)

Event = dict[str, Any]


def recorded(name: str) -> Event:
    """A real event of one of the routes."""
    event: Event = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def by(event: Event, iam: dict[str, str] | None) -> Event:
    """The same request, signed by somebody else or by nobody."""
    context = {name: value for name, value in event["requestContext"].items() if name != "authorizer"}
    return event | {"requestContext": context | ({"authorizer": {"iam": iam}} if iam else {})}


FUNCTION = recorded("report-events")["requestContext"]["authorizer"]["iam"]
"""A function of the mesh."""


def holding(event: Event, subject: str, issuer: str = ISSUER, **claims: object) -> Event:
    """The same request through the API of those who have a token, which API Gateway has checked."""
    said = {"iss": issuer, "sub": subject, **claims}
    parts = (json.dumps({"alg": "RS256", "kid": "1"}), json.dumps(said), "signature")
    token = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    context = event["requestContext"] | {"authorizer": {"jwt": {"claims": _as_text(said), "scopes": None}}}
    context |= {"apiId": JWT_HOST.partition(".")[0], "domainName": JWT_HOST}
    return event | {"requestContext": context, "headers": event["headers"] | {"authorization": f"Bearer {token}"}}


def _as_text(claims: dict[str, object]) -> dict[str, str]:
    """As API Gateway hands claims over: lists in brackets, their values not to be told apart."""
    return {
        name: f"[{' '.join(map(str, value))}]" if isinstance(value, list) else str(value)
        for name, value in claims.items()
    }


def asking(event: Event, body: object = None, **query: str) -> Event:
    """The same call with another body or parameters, and without its idempotency key."""
    headers = {name: value for name, value in event["headers"].items() if name != "idempotency-key"}
    raw = body if isinstance(body, str) else json.dumps(body if body is not None else {})
    return event | {"headers": headers, "body": raw, "queryStringParameters": query or event["queryStringParameters"]}


def calling(route: str, iam: dict[str, str] | None = None, body: object = None, **parameters: str) -> Event:
    """A call of a route, `GET /api/v1/mesh/{id}`; parameters that are not of its path are of its query."""
    method, _, template = route.partition(" ")
    of_path = {name: value for name, value in parameters.items() if f"{{{name}}}" in template}
    of_query = {name: value for name, value in parameters.items() if name not in of_path}
    path = template
    for name, value in of_path.items():
        path = path.replace(f"{{{name}}}", value)
    event = by(recorded("read-task"), iam or ALICE)
    context = event["requestContext"]
    context |= {"http": context["http"] | {"method": method, "path": path}, "routeKey": route}
    return event | {
        "routeKey": route,
        "rawPath": path,
        "pathParameters": of_path or None,
        "queryStringParameters": of_query or None,
        "body": body if isinstance(body, str) else json.dumps(body) if body is not None else None,
    }


def reading(task_id: str, iam: dict[str, str] | None = None) -> Event:
    event = recorded("read-task")
    path = f"/api/v1/mesh/{task_id}"
    context = event["requestContext"] | {"http": event["requestContext"]["http"] | {"path": path}}
    event |= {"rawPath": path, "pathParameters": {"id": task_id}, "requestContext": context}
    return by(event, iam) if iam else event


@dataclass
class Gateway:
    """Both functions over one table and the actors' queues."""

    mesh: MeshTable
    environ: dict[str, str]

    def api(self, event: Event, now: datetime | None = None) -> tuple[int, Any]:
        return self._call(build_api, event, now or at(0))

    def ingest(self, event: Event, now: datetime | None = None) -> tuple[int, Any]:
        return self._call(build_ingest, event, now or at(0))

    def stream(self, event: Event, now: datetime | None = None) -> tuple[int, Any]:
        """Waiting takes no time: the clock moves by itself."""
        clock = FakeClock(((now or at(0)) - at(0)).total_seconds())
        return self._call(build_streams, event, now or at(0), clock)

    def answered_by(self, function: str, event: Event) -> tuple[int, Any]:
        """The answer of one of the functions, by its name."""
        ask = {names.GATEWAY_API: self.api, names.GATEWAY_INGEST: self.ingest, names.GATEWAY_STREAM: self.stream}
        return ask[function](event)

    def messages(self, actor: str = "inspect-dataset") -> list[Any]:
        url = QUEUES + names.queue_name("flights", actor)
        received = clients.sqs().receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in received.get("Messages", [])]

    def _call(self, build: Any, event: Event, now: datetime, environment: Environment = REAL) -> tuple[int, Any]:
        settings = settings_with(self.environ, self.mesh)
        telemetry = Telemetry("flights", "test")
        response = answer(event, build(settings, telemetry, environment).routes(now), telemetry.log)
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
def emulated(folder: Path) -> Iterator[Gateway]:
    """A gateway over an emulated table and queues of its own; `folder` holds its mesh."""
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
        create_tasks_table(clients.dynamodb(), "asya-flights-tasks")
        clients.s3().create_bucket(Bucket=environ["ASYA_BUCKET"])
        for actor in ("inspect-dataset", "publish-report"):
            clients.sqs().create_queue(QueueName=names.queue_name("flights", actor))
        key = clients.kms().create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["KeyId"]
        environ["ASYA_TOKEN_KEY"] = key
        patch.setenv("ASYA_TOKEN_KEY", key)
        yield Gateway(MESH, environ)
    for built in (wiring._settings_and_telemetry, wiring._api, wiring._ingest, stream_wiring._routes_and_telemetry):
        built.cache_clear()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with emulated(tmp_path) as found:
        yield found


@pytest.fixture(autouse=True, scope="module")
def clients_of_this_module() -> Iterator[None]:
    """Making clients is slow; these are made once, within the emulation, and left to nobody else."""
    for made in (clients.sqs, clients.dynamodb, clients.s3, clients.kms):
        made.cache_clear()
    yield
    for made in (clients.sqs, clients.dynamodb, clients.s3, clients.kms):
        made.cache_clear()


def report(gateway: Gateway, task_id: str, status: str, seconds: float = 0.0, **more: Any) -> None:
    """Have a function of the mesh report on a task."""
    data = {"route": {"prev": [], "curr": "inspect-dataset", "next": []}} | more.pop("data", {})
    event = {"id": task_id, "status": status, "at": format_time(at(seconds)), "data": data} | more
    answer = gateway.ingest(by(recorded("report-events"), FUNCTION) | {"body": json.dumps([event])}, at(seconds))
    assert answer[1]["items"][0]["status"] == 204
