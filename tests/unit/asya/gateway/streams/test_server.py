"""Long-lived streams, as AWS Lambda Web Adapter serves them (`protocol §13`, `gateway.streaming: adapter`)."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import REAL
from asya.function.lambdas.function import Function
from asya.gateway.access import AccessRules
from asya.gateway.streams import stream_tokens
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.routes import CURRENT, StreamRequest, StreamRoutes
from asya.gateway.streams.server import StreamServer, http_server, live_routes
from asya.gateway.streams.sse import KEEPALIVE_SECONDS, MAX_STREAM_SECONDS
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.tasks import Tasks
from tests.doubles.streams import FakeClock, MemoryPartials
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import event, hop
from tests.unit.asya.gateway.streams.test_event_poller import partial
from tests.unit.asya.gateway.streams.test_routes import events_of

OWNER = "AIDAALICE"
MESH = MeshTable(namespace="flights", actors={}, operators=("arn:aws:iam::123456789012:role/Admin",))
SETTINGS = Settings(
    table=MESH,
    actor="x-gateway-live",
    region="us-east-1",
    bucket="flights",
    data_uri="s3://flights/data/",
    results_uri="s3://flights/results/",
    queue_url_prefix="https://sqs.us-east-1.amazonaws.com/123456789012/",
)


class Keys:
    """The same key every day."""

    def get(self, label: bytes) -> bytes:
        return b"key"


@dataclass
class World:
    """The tasks of a mesh and their streams."""

    environment: Any = REAL
    store: MemoryTaskStore = field(default_factory=MemoryTaskStore)
    partials: MemoryPartials = field(default_factory=MemoryPartials)

    def __post_init__(self) -> None:
        self.tasks = Tasks(self.store, print, threaded=False)
        self.report(event("t", "registered", owner=OWNER))

    def report(self, *events: TaskEvent) -> None:
        self.tasks.report(events, datetime.now(UTC), may_create=True)

    def publish(self, *messages: PartialEvent) -> None:
        self.partials.save(messages)

    def live(self, keepalive: float = KEEPALIVE_SECONDS, max_seconds: float = MAX_STREAM_SECONDS) -> StreamServer:
        streams = StreamRoutes(
            namespace="flights",
            tasks=self.tasks,
            poller=EventPoller(self.tasks, self.partials, self.environment),
            access=AccessRules(MESH, "123456789012", "us-east-1"),
            keys=Keys(),  # type: ignore[arg-type]
            is_continuous=True,
        )
        routes, log = live_routes(Function(SETTINGS), streams), Telemetry("flights", "test").log
        return StreamServer(routes, streams.poller, self.environment, log, keepalive, max_seconds)


@contextmanager
def served(live: StreamServer) -> Iterator[int]:
    server = http_server(live, port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def open_stream(port: int, path: str, *, user: str | None = OWNER, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    identity = {"userArn": "arn:aws:iam::123456789012:user/alice", "caller": user, "user": user}
    context = {"requestId": "r", "stage": "live", "identity": identity if user else {}}
    connection.request("GET", path, headers={"x-amzn-request-context": json.dumps(context), **headers})
    return connection.getresponse()


def blocks(response: http.client.HTTPResponse) -> Iterator[str]:
    """Yields the events of a response as they arrive."""
    lines: list[str] = []
    for line in response:
        if line == b"\n":
            yield "\n".join(lines) + "\n\n"
            lines = []
        else:
            lines.append(line.decode().rstrip("\n"))


@pytest.mark.rule("13.stream.wait")
def test_a_stream_has_keepalives_until_the_task_ends() -> None:
    world = World()
    with served(world.live(keepalive=0.05)) as port:
        response = open_stream(port, "/api/v1/mesh/t/events")
        assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
        assert response.headers["transfer-encoding"] == "chunked"
        events = blocks(response)
        assert next(events) == "retry: 300\n\n"
        assert [each["data"]["status"] for each in events_of(next(events))] == ["running"]
        assert [next(events) for _ in range(3)] == [": keepalive\n\n"] * 3
        world.report(*hop("t", 0)[:2])
        world.publish(partial(0))
        rest = []
        for block in events:
            rest += events_of(block)
            if rest and rest[-1]["event"] == "partial":
                world.report(*hop("t", 0)[2:], event("t", "failed", 0, 9))
        shown = [(each["event"], each["data"].get("step")) for each in rest]
        assert shown == [
            ("status", "received"), ("status", "processing"), ("partial", None), ("status", "completed"), ("final", None),
        ]  # fmt: skip
        again = open_stream(port, "/api/v1/mesh/t/events", **{"last-event-id": rest[-1]["id"]})
        assert (again.status, again.read()) == (204, b"")


@pytest.mark.rule("13.stream.wait")
def test_a_keepalive_comes_every_15_seconds_and_a_response_ends_after_five_minutes() -> None:
    clock = FakeClock()
    world = World(clock)
    events = world.live().stream(StreamRequest("t", None, CURRENT))
    keepalive_times = [clock.seconds for text in events if text == ": keepalive\n\n"]
    assert keepalive_times[:3] == pytest.approx([15.0, 30.0, 45.0])
    assert clock.seconds == pytest.approx(300.0)
    assert len(keepalive_times) == 20


@pytest.mark.rule("13.stream-token")
@pytest.mark.parametrize("left", [-5, 0, 7, 40, 299, 3600])
def test_a_stream_ends_with_its_token(left: int) -> None:
    """Who reads slowly, or asks just before the end, follows nothing afterwards."""
    clock = FakeClock()
    request = StreamRequest("t", None, CURRENT, clock.now() + timedelta(seconds=left))
    list(World(clock).live().stream(request))
    assert clock.seconds == pytest.approx(max(0, min(left, 300)))


def test_the_stream_of_a_task_whose_record_has_expired_ends() -> None:
    """Each poll of it ends at once, so the stream would poll without a pause."""
    texts = []
    for text in World(FakeClock()).live().stream(StreamRequest("gone", None, CURRENT)):
        texts.append(text)
        assert len(texts) < 3


def test_a_client_resumes_a_response_that_has_timed_out() -> None:
    world = World()
    with served(world.live(keepalive=0.05, max_seconds=0.2)) as port:
        first = events_of(open_stream(port, "/api/v1/mesh/t/events").read().decode())
        world.report(*hop("t", 0)[:1])
        second = events_of(
            open_stream(port, "/api/v1/mesh/t/events", **{"last-event-id": first[-1]["id"]}).read().decode()
        )
    assert [each["data"].get("step") for each in (*first, *second)] == [None, "received"]


def test_access_is_by_api_gateway_or_by_token() -> None:
    world = World()
    world.report(event("t", "canceled", 0, 9))
    ends_at = stream_tokens.expiry(datetime.now(UTC))
    token = stream_tokens.sign(b"key", "t", ends_at)
    with served(world.live()) as port:
        assert open_stream(port, "/api/v1/mesh/t/events").status == 200
        assert open_stream(port, "/live/api/v1/mesh/t/events").status == 200
        assert open_stream(port, "/envelopes/t/stream").status == 200
        assert open_stream(port, "/api/v1/mesh/t/events", user="AIDABOB").status == 404
        assert open_stream(port, "/api/v1/mesh/t/events", user=None).status == 403
        assert open_stream(port, "/api/v1/mesh/t/events", user=None, **{"x-amzn-request-context": "{"}).status == 403
        with_token = open_stream(port, f"/api/v1/mesh/t/stream?token={token}", user=None)
        assert (with_token.status, with_token.headers["access-control-allow-origin"]) == (200, "*")
        refused = open_stream(port, "/api/v1/mesh/t/stream?token=x", user=None)
        assert (refused.status, json.loads(refused.read())["error"]["code"]) == (403, "forbidden")
        assert open_stream(port, "/api/v1/mesh/t", user=None).status == 404


def test_a_request_with_two_contexts_has_no_identity() -> None:
    world = World()
    with served(world.live()) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.putrequest("GET", "/api/v1/mesh/t/events")
        for user in ("AIDABOB", OWNER):
            identity = {"userArn": "arn:aws:iam::123456789012:user/x", "caller": user}
            connection.putheader("x-amzn-request-context", json.dumps({"identity": identity}))
        connection.endheaders()
        assert connection.getresponse().status == 403


def test_the_health_check_succeeds() -> None:
    with served(World().live()) as port:
        response = open_stream(port, "/health", user=None)
        assert (response.status, json.loads(response.read())) == (200, {"status": "ok"})


def test_a_table_error_ends_the_stream_and_not_the_server() -> None:
    world = World()
    with served(world.live(keepalive=0.05)) as port:
        events = blocks(open_stream(port, "/api/v1/mesh/t/events"))
        received = [next(events), next(events)]
        world.store.broken = True
        assert set(events) <= {": keepalive\n\n"}
        assert open_stream(port, "/api/v1/mesh/t/events").status == 503
        world.store.broken = False
        last = events_of(received[1])[0]["id"]
        world.report(event("t", "canceled", 0, 9))
        assert open_stream(port, "/api/v1/mesh/t/events", **{"last-event-id": last}).status == 200


def test_a_lost_client_does_not_disturb_the_server() -> None:
    world = World()
    with served(world.live(keepalive=0.01, max_seconds=3.0)) as port:
        response = open_stream(port, "/api/v1/mesh/t/events")
        assert response.read(5) == b"retry"
        response.close()
        assert open_stream(port, "/health", user=None).status == 200
