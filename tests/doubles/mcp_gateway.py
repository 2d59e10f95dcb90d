"""The gateway's tools as a client of Model Context Protocol meets them, over an emulated table and queues; the test plays the mesh.

While a call waits for its task, nobody sleeps: the next step of what the mesh does is taken instead.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace as changed

from asya.gateway.http.router import answer
from asya.gateway.lambdas.api_groups import build_api
from asya.gateway.mcp.types import MODERN
from asya.messaging.aws import clients
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import RealEnvironment
from asya.pause import pausing
from asya.pause.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.protocol import names
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, Tool
from asya.protocol.pause import Pause, PauseField
from asya.protocol.times import format_time
from tests.doubles.envelopes import hop
from tests.doubles.gateway_functions import (
    ALICE,
    FUNCTION,
    MESH,
    QUEUES,
    Gateway,
    by,
    calling,
    emulated,
    recorded,
    settings_with,
)
from tests.doubles.tasks import at

ROUTE = "POST /mcp"
GOOD = {"flights": "raw/flights.csv.gz"}
AT_ONCE = {"prefer": "wait=0"}
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
    "quiet": Tool(description="Tells nobody how far it is", route=("publish-report",), progress=False),
}


class Clock(RealEnvironment):
    """Time passes only while somebody waits, and something happens then."""

    is_threaded = False

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps: list[Callable[[], None]] = []

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        # What is too short to add up would never end.
        self.seconds += max(seconds, 0.001)
        if self.steps:
            self.steps.pop(0)()


@dataclass
class McpGateway:
    """The gateway, and the mesh behind it.

    Attributes:
        started: ids of the tasks whose first message has been met.
        session: as an older client was given it at its handshake.
    """

    gateway: Gateway
    clock: Clock = field(default_factory=Clock)
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
    def in_session(self) -> dict[str, str]:
        """The header of an older client's session."""
        return {"mcp-session-id": self.session}

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the function answers to an event of API Gateway."""
        settings = settings_with(self.gateway.environ, self.gateway.mesh)
        telemetry = Telemetry("flights", "test")
        return answer(event, build_api(settings, telemetry, self.clock).routes(at(0)), telemetry.log)

    def post(
        self, body: object, headers: dict[str, str] | None = None, iam: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """What a message is answered with; of an event stream its text."""
        event = calling(ROUTE, iam or ALICE, body)
        response = self.call(event | {"headers": event["headers"] | (headers or {})})
        if "body" not in response:
            return response["statusCode"], None
        is_json = response["headers"]["content-type"] == "application/json"
        return response["statusCode"], json.loads(response["body"]) if is_json else response["body"]

    def ask(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        revision: str = MODERN,
        headers: dict[str, str] | None = None,
        iam: dict[str, str] | None = None,
        **message: Any,
    ) -> tuple[int, Any]:
        """Make a request as a client of a revision does."""
        sent, known = dict(params or {}), {"mcp-protocol-version": revision}
        if revision == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            sent["_meta"] = meta | sent.get("_meta", {})
            known |= {"mcp-method": method} | ({"mcp-name": str(sent["name"])} if method == "tools/call" else {})
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": sent} | message
        return self.post(body, known | (headers or {}), iam)

    def use(self, name: str, arguments: object = None, **more: Any) -> Any:
        """Call a tool; its result."""
        params = {"name": name, "arguments": arguments if arguments is not None else {}} | more.pop("params", {})
        status, content = self.ask("tools/call", params, **more)
        assert status == 200, content
        return content["result"]

    def report(self, status: str, seconds: float = 1.0, **data: Any) -> None:
        """A report on the last task that was started."""
        known = {
            "route": {"prev": [], "curr": "inspect-dataset", "next": ["publish-report"]},
            "actor": "inspect-dataset",
        }
        event = {"id": self.task(), "status": status, "at": format_time(at(seconds)), "data": known | data}
        signed = by(recorded("report-events"), FUNCTION) | {"body": json.dumps([event])}
        assert self.gateway.ingest(signed, at(seconds))[1]["items"][0]["status"] == 204

    def task(self) -> str:
        """The id of the last task that was started."""
        for actor in ("inspect-dataset", "publish-report"):
            self.started += [message["id"] for message in self.gateway.messages(actor)]
        return self.started[-1]

    def shown(self) -> Any:
        """The last task that was started."""
        return self.gateway.api(calling("GET /api/v1/mesh/{id}", ALICE, id=self.task()), at(5))[1]

    def pause(self, position: int = 1, seconds: float = 1.0, spec: Actor = APPROVE) -> None:
        """The last task that was started pauses."""
        body = {
            "id": self.task(),
            "route": {"prev": ["inspect-dataset"] * position, "curr": "approve", "next": ["publish-report"]},
            "payload": {"flights": "raw/x"},
            "status": {"phase": "pending", "actor": "approve", "attempt": 1, "created_at": format_time(at(0))},
        }
        paused = hop(json.dumps(body).encode(), actor="approve", spec=spec)
        kept: Envelope = pausing.paused_envelope(paused, now=at(seconds))
        PausedEnvelopes(clients.s3(), self.gateway.environ["ASYA_BUCKET"]).save(
            PauseKey(self.task(), 0, position), kept
        )
        asked = spec.pause or Pause()
        event = {
            "id": self.task(),
            "status": "paused",
            "at": format_time(at(seconds)),
            "position": position,
            "data": {"prompt": asked.prompt, "fields": [json.loads(json.dumps(_shown(each))) for each in asked.fields]},
        }
        signed = by(recorded("report-events"), FUNCTION) | {"body": json.dumps([event])}
        assert self.gateway.ingest(signed, at(seconds))[1]["items"][0]["status"] == 204

    def then(self, *steps: Callable[[], None]) -> None:
        """What the mesh does while a call waits, step by step."""
        self.clock.steps += steps


def _shown(asked: PauseField) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(asked)
    return found


def events(text: str) -> list[Any]:
    parts = text.split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("event: message\ndata: ") and part.count("\n") == 1 for part in parts)
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]


@pytest.fixture(scope="module")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One table and its queues for all tests of a module: each has tasks and a session of its own."""
    with emulated(tmp_path_factory.mktemp("mcp")) as found:
        yield found


@pytest.fixture
def mcp(shared_gateway: Gateway) -> McpGateway:
    """The gateway as a client meets it."""
    return McpGateway(shared_gateway)
