"""A client of Model Context Protocol and the gateway, over an emulated table and queues; the test acts as the mesh.

A call that waits for its task does not sleep: it runs the next step of the mesh instead.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from msgspec.structs import replace as changed

from asya.capabilities.mcp.types import MODERN
from asya.capabilities.pauses import pausing
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.function.aws import clients
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import RealEnvironment
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api import build_api
from asya.protocol import names
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, Tool
from asya.protocol.pause import Pause, PauseField, ShownValue
from asya.protocol.times import format_time
from tests.doubles.envelopes import hop
from tests.doubles.gateway_functions import (
    ALICE,
    MESH,
    QUEUES,
    Gateway,
    emulated_gateway,
    route_event,
    settings_with,
)
from tests.doubles.tasks import at

ROUTE = "POST /mcp"
ARGUMENTS = {"flights": "raw/flights.csv.gz"}
NO_WAIT = {"prefer": "wait=0"}
LEGACY = "2025-11-25"
BASE = "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"
APPROVE = Actor(
    kind="pause",
    pause=Pause(prompt="Send it?", fields=(PauseField(name="approved", type="boolean", prompt="Go on?"),)),
)
TOOLS = {
    "analyse": Tool(
        description="Analyses flights",
        route=("inspect-dataset", "publish-report"),
        input_schema={
            "type": "object",
            "required": ["flights"],
            "properties": {
                "flights": {"type": "string", "pattern": "^raw/"},
                "month": {"type": "integer", "maximum": 12},
            },
        },
    ),
    "quiet": Tool(description="Sends no progress", route=("publish-report",), progress=False),
}


class StepClock(RealEnvironment):
    """A clock that advances only during `sleep`, which also runs the next step of the mesh."""

    is_threaded = False

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps: list[Callable[[], None]] = []

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        # A lower bound, so that the sum reaches every deadline.
        self.seconds += max(seconds, 0.001)
        if self.steps:
            self.steps.pop(0)()


@dataclass
class McpGateway:
    """The gateway and the mesh behind it.

    Attributes:
        started: The ids of the tasks whose first message was received.
        session: The session id of a client with a handshake.
    """

    gateway: Gateway
    clock: StepClock = field(default_factory=StepClock)
    started: list[str] = field(default_factory=list)
    session: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        actors = MESH.actors | {"approve": APPROVE, "x-resume": Actor(kind="crew")}
        operators = ("arn:aws:iam::123456789012:role/Admin",)
        self.gateway.mesh = changed(MESH, tools=TOOLS, actors=actors, operators=operators)
        for actor in ("inspect-dataset", "publish-report", "x-resume", "x-sink"):
            queue = names.queue_name("flights", actor)
            with contextlib.suppress(clients.sqs().exceptions.QueueDoesNotExist):
                clients.sqs().delete_queue(QueueUrl=QUEUES + queue)
            clients.sqs().create_queue(QueueName=queue)

    @property
    def session_header(self) -> dict[str, str]:
        """The session header of a client with a handshake."""
        return {"mcp-session-id": self.session}

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        """Sends an event of API Gateway to the function and returns its response."""
        settings = settings_with(self.gateway.environ, self.gateway.mesh)
        telemetry = Telemetry("flights", "test")
        return answer(event, build_api(HttpServices(settings, self.clock, telemetry)), at(0), telemetry.log)

    def post(
        self, body: object, headers: dict[str, str] | None = None, iam: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Posts a message; returns the status, and the JSON or the text of the response."""
        event = route_event(ROUTE, iam or ALICE, body)
        response = self.call(event | {"headers": event["headers"] | (headers or {})})
        if "body" not in response:
            return response["statusCode"], None
        is_json = response["headers"]["content-type"] == "application/json"
        return response["statusCode"], json.loads(response["body"]) if is_json else response["body"]

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        revision: str = MODERN,
        headers: dict[str, str] | None = None,
        iam: dict[str, str] | None = None,
        **message: Any,
    ) -> tuple[int, Any]:
        """Makes a request as a client of a revision does."""
        all_params, all_headers = dict(params or {}), {"mcp-protocol-version": revision}
        if revision == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            all_params["_meta"] = meta | all_params.get("_meta", {})
            all_headers |= {"mcp-method": method} | (
                {"mcp-name": str(all_params["name"])} if method == "tools/call" else {}
            )
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": all_params} | message
        return self.post(body, all_headers | (headers or {}), iam)

    def call_tool(self, name: str, arguments: object = None, **more: Any) -> Any:
        """Calls a tool and returns its result."""
        params = {"name": name, "arguments": arguments if arguments is not None else {}} | more.pop("params", {})
        status, content = self.request("tools/call", params, **more)
        assert status == 200, content
        return content["result"]

    def report(self, status: str, seconds: float = 1.0, *, position: int = 0, **data: Any) -> None:
        """Reports a status of the last started task."""
        defaults = {
            "route": {"prev": [], "curr": "inspect-dataset", "next": ["publish-report"]},
            "actor": "inspect-dataset",
        }
        event = {"id": self.task_id(), "status": status, "at": format_time(at(seconds)), "data": defaults | data}
        event["position"] = position
        assert self.gateway.write_reports([event], at(seconds)) == [204]

    def task_id(self) -> str:
        """Returns the id of the last started task."""
        for actor in ("inspect-dataset", "publish-report"):
            self.started += [message["id"] for message in self.gateway.messages(actor)]
        return self.started[-1]

    def view(self) -> Any:
        """Returns the last started task."""
        return self.gateway.api(route_event("GET /api/v1/mesh/{id}", ALICE, id=self.task_id()), at(5))[1]

    def pause(
        self, position: int = 1, seconds: float = 1.0, spec: Actor = APPROVE, shown: Sequence[ShownValue] = ()
    ) -> None:
        """Pauses the last started task."""
        body = {
            "id": self.task_id(),
            "route": {"prev": ["inspect-dataset"] * position, "curr": "approve", "next": ["publish-report"]},
            "payload": {"flights": "raw/x"},
            "status": {"phase": "pending", "actor": "approve", "attempt": 1, "created_at": format_time(at(0))},
        }
        paused = hop(json.dumps(body).encode(), actor="approve", spec=spec)
        envelope: Envelope = pausing.paused_envelope(paused, now=at(seconds))
        PausedEnvelopes(clients.s3(), self.gateway.environ["ASYA_BUCKET"]).save(
            PauseKey(self.task_id(), 0, position), envelope
        )
        pause = spec.pause or Pause()
        event = {
            "id": self.task_id(),
            "status": "paused",
            "at": format_time(at(seconds)),
            "position": position,
            "data": {
                "prompt": pause.prompt,
                "fields": msgspec.to_builtins(pause.fields),
                "shown": msgspec.to_builtins(shown),
            },
        }
        assert self.gateway.write_reports([event], at(seconds)) == [204]

    def on_wait(self, *steps: Callable[[], None]) -> None:
        """Adds steps that the mesh takes while a call waits."""
        self.clock.steps += steps


def events(text: str) -> list[Any]:
    """Returns the messages of an event stream."""
    parts = text.split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("event: message\ndata: ") and part.count("\n") == 1 for part in parts)
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]


@pytest.fixture(scope="module")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The gateway on one table for all tests of a module; each test has its own tasks and session."""
    with emulated_gateway(tmp_path_factory.mktemp("mcp")) as gateway:
        yield gateway


@pytest.fixture
def mcp(shared_gateway: Gateway) -> McpGateway:
    """The gateway for one test."""
    return McpGateway(shared_gateway)
