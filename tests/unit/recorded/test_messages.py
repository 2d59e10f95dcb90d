"""What is on its way between two versions, or held by clients, is understood by this one: messages, reports, cursors, tokens."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from asya.gateway.a2a.push import PushNotification
from asya.gateway.access import AccessRules, IamIdentity, TokenIdentity
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api_groups import build_api
from asya.gateway.mcp.pause import read_request_state
from asya.gateway.mcp.tools import tool_list
from asya.gateway.routes import tool_calls
from asya.gateway.streams import stream_tokens
from asya.gateway.streams.stream_cursor import PartialMark, Settled, StreamCursor, paused_state
from asya.gateway.streams.stream_cursor import decode as decode_cursor
from asya.messaging.aws import clients
from asya.messaging.aws.settings import Settings
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import REAL
from asya.pause.resuming import restore
from asya.protocol import ids, job_runs, keys
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope, UnknownMembers
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import (
    EventData,
    EventResult,
    EventResults,
    PartialEvent,
    TaskEvent,
)
from asya.protocol.mesh_table import (
    Actor,
    Agent,
    Batch,
    CircuitBreaker,
    FanIn,
    Gateway,
    MeshTable,
    Policy,
    Resiliency,
    Retention,
    Rule,
    Sink,
    SparkApplication,
    SparkJob,
    Tool,
    WorkerSize,
    decode_table,
)
from asya.protocol.pause import Pause, PauseField, PauseRelease
from asya.protocol.route import Route
from asya.protocol.run_progress import RunNote
from asya.protocol.status import Status
from asya.spark.run_formation import client_token
from asya.tasks.event_batch import read_events
from asya.tasks.listing import read_list_query
from asya.tasks.view import TaskView
from tests.doubles.envelopes import hop, raw
from tests.doubles.gateway_functions import recorded_event
from tests.unit.recorded.recording import BUCKET, RESULTS_URI, Recording, load

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
AT = "2026-11-20T09:00:00.000000Z"
ERROR = ErrorInfo(type="shop.BadOrder", message="no such airport …", mro=("ValueError", "Exception"), traceback="…")
FIELD = PauseField(name="size", type="number", prompt="How large?", options=(1, 2.5), default=1)

ENVELOPE = Envelope(
    id="order/7 ü",
    parent_id="root",
    route=Route(("prep", "split"), "infer", ("post", "x-fan-in")),
    headers={
        "tenant": raw("acme"),
        "x-asya-first-attempt": raw(AT),
        "x-asya-gateway-url": raw("https://gateway.example"),
        "x-asya-generation": raw(2),
        "x-asya-not-before": raw(AT),
        "x-asya-root": raw("root"),
        "x-asya-route-override": raw({"post": "post-v2"}),
        "traceparent": raw("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    },
    status=Status(
        phase="retrying",
        reason="RuntimeError",
        actor="infer",
        attempt=2,
        max_attempts=3,
        created_at=AT,
        updated_at=AT,
        deadline_at="2026-11-20T10:00:00.000000Z",
        error=ERROR,
    ),
    payload=Raw(b'{"text": "h\xc3\xa9llo", "n": 1.50, "long": 12345678901234567890}'),
    extra=UnknownMembers({"unknown": Raw(b"[1, 2]")}),
    status_extra=UnknownMembers({"note": Raw(b'"kept"')}),
)
EVENTS: list[TaskEvent | PartialEvent] = [
    TaskEvent(
        id="env-1",
        status="completed",
        at=AT,
        generation=2,
        position=1,
        attempt=3,
        parent_id="root",
        root_id="root",
        data=EventData(
            actor="infer",
            route=Route(("prep",), "infer", ("post",)),
            attempt=3,
            message_size_kb=1.5,
            duration_ms=12.25,
            run=RunNote(run_id="asya.shop.infer.0000000001", job_run_id="00f1", state="RUNNING", at=AT, envelopes=3),
        ),
    ),
    TaskEvent(
        id="env-1",
        status="failed",
        at=AT,
        data=EventData(
            actor="infer", result=Raw(b'{"n":1.50}'), result_uri="s3://b/k.json", error=ERROR, reason="PolicyExhausted"
        ),
    ),
    TaskEvent(id="env-2", status="registered", at=AT, data=EventData(actor="prep", owner="AIDA", deadline_at=AT)),
    TaskEvent(id="env-3", status="paused", at=AT, data=EventData(actor="x-pause", prompt="Go on?", fields=(FIELD,))),
    PartialEvent(id="env-1", at=AT, data=Raw(b'{"rows":1}'), actor="infer", position=1, receive=2, sequence=7),
]
TAKEN = EventResults(items=(EventResult(id="env-1", status=204), EventResult(id="env-2", status=404, error="no")))
PUSH = PushNotification(
    config_id="config-1",
    task=TaskView(
        id="env-1",
        status="succeeded",
        progress_percent=100,
        created_at=AT,
        updated_at=AT,
        generation=0,
        result=Raw(b'{"n":1.50}'),
        owner="AIDA",
        context="context-1",
    ),
)

HANDOVER = PauseRelease(to="x-resume", epoch=1, at="2026-11-20T09:30:00.000000Z", input=Raw(b'{"size":2.5}'))

SHOWN = {
    "nothing": StreamCursor(),
    "some": StreamCursor(
        generation=2, state="r", percent=40, run_at=1_795_165_200_000, steps={(0, 1): 3, (1, 1): 2, (1, 3): 1}
    ),
    "paused": StreamCursor(
        state=paused_state(AT),
        percent=50,
        steps={(0, 1): 3},
        partials=(PartialMark(0, 1, 1, 9), PartialMark(3, 1, 2, 0)),
    ),
    "long": StreamCursor(state="r", percent=99, steps={(position, 1): 3 for position in range(1000)}),
    "ended": StreamCursor(generation=1, state="f", percent=100, steps={(0, 1): 3}),
}
IRREGULAR = StreamCursor(
    state="r",
    steps={(position, attempt): 1 + (position * attempt) % 3 for position in range(1500) for attempt in (1, 2)},
)
TOKEN_KEY = b"0123456789abcdef0123456789abcdef"

TABLE = MeshTable(
    namespace="shop",
    actors={
        "infer": Actor(
            kind="handler",
            handler="orders.infer",
            timeout=20.0,
            batch=Batch(size=5, window=1.5),
            resiliency=Resiliency(
                policies={"later": Policy(max_attempts=3, backoff="linear", jitter=True, then_route=("post",))},
                rules=(Rule(errors=("ValueError",), policy="later"),),
                circuit_breaker=CircuitBreaker(failures=5, window=60.0, open_for=30.0),
            ),
            can_send_to=("post",),
            deduplicate=True,
            fair_by="tenant",
        ),
        "crunch": Actor(
            kind="spark",
            spark=SparkJob(job="heavy.crunch", driver=WorkerSize(cores=2, disk_gb=40), env={"MODE": "fast"}),
        ),
        "gather": Actor(kind="fan_in", fan_in=FanIn(timeout=60.0, on_failure="partial", quorum=2)),
        "approve": Actor(kind="pause", pause=Pause(prompt="Go on?", fields=(FIELD,))),
        "x-sink": Actor(kind="crew"),
    },
    tools={"order": Tool(description="Take an order", route=("infer", "crunch"), timeout=60.0)},
    agent=Agent(name="Shop", skills=({"id": "order", "tags": ["orders"]},)),
    sink=Sink(
        layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/", hooks=("infer",), index=True
    ),
    # Its `allowed_hosts` were for two purposes and are not read: the function of the next deployment has a table with both.
    gateway=Gateway(max_body=1024, token_calls=("tasks", "mcp")),
    spark=SparkApplication(start_per_second=2.0, start_burst=5, max_concurrent_runs=7),
    retention=Retention(tasks=1.0, payloads=2.0, runs=3.0),
    max_hops=500,
    operators=("groups=mesh-operators",),
)
FLIGHTS = MeshTable(
    namespace="shop",
    actors={"inspect-dataset": Actor(kind="handler"), "x-sink": Actor(kind="crew")},
    tools={"analyse-flights": Tool(description="Analyse", route=("inspect-dataset",))},
)
MANY_TOOLS = MeshTable(
    namespace="shop",
    actors=FLIGHTS.actors,
    tools={f"tool-{number:03}": Tool(description="", route=("inspect-dataset",)) for number in range(300)},
)


class SentMessages:
    """An SQS client that takes everything."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def send_message(self, **request: Any) -> dict[str, Any]:
        """Take one message."""
        self.bodies.append(request["MessageBody"])
        return {}


def front(state: Recording, patch: pytest.MonkeyPatch, sqs: SentMessages) -> Callable[..., Any]:
    """The gateway's API over a recorded state: from an event of API Gateway to the answer's content."""
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setattr(clients, "dynamodb", lambda: state.dynamodb)
    patch.setattr(clients, "s3", lambda: state.s3)
    patch.setattr(clients, "sqs", lambda: sqs)
    patch.setattr(tool_calls, "WAIT_SECONDS", 0.0)
    settings = Settings(
        table=FLIGHTS,
        actor="x-gateway-api",
        region="us-east-1",
        bucket=BUCKET,
        data_uri=f"s3://{BUCKET}/data/",
        results_uri=RESULTS_URI,
        queue_url_prefix="https://sqs.us-east-1.amazonaws.com/123456789012/",
    )

    def call(event: dict[str, Any]) -> Any:
        telemetry = Telemetry("shop", "test")
        found = answer(event, build_api(settings, telemetry, REAL).routes(NOW), telemetry.log)
        return msgspec.json.decode(found["body"])

    return call


def requests() -> dict[str, tuple[dict[str, Any], Callable[[Any], Any]]]:
    """Requests that start a task once, each with where the task's id stands in the answer."""
    keyed, mcp = recorded_event("call-tool"), recorded_event("mcp-call-tool")
    keyed["headers"]["idempotency-key"] = "tool-2026-11-20"
    mcp["headers"] |= {"mcp-session-id": "session-1", "mcp-protocol-version": "2025-06-18", "prefer": "wait=0"}
    mcp["body"] = (
        '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"analyse-flights","arguments":{"flights":"a"}}}'
    )
    return {
        "task": (recorded_event("start-task"), lambda content: content["id"]),
        "tool": (keyed, lambda content: content["id"]),
        "mcp": (mcp, lambda content: content["result"]["structuredContent"]["id"]),
        "a2a": (recorded_event("a2a-send-message"), lambda content: content["result"]["task"]["id"]),
    }


@pytest.fixture
def state() -> Recording:
    return load("messages")


def test_an_envelope_on_its_way(state: Recording) -> None:
    (body,) = state.messages["infer"]
    found = decode(body)
    assert found == ENVELOPE
    assert bytes(found.payload) == bytes(ENVELOPE.payload)
    assert (found.generation, found.root_id, found.is_stealth) == (2, "root", False)


def test_an_envelope_that_was_handed_over_goes_on_with_its_answers(state: Recording) -> None:
    resumed, canceled = (state.messages[actor][0] for actor in ("x-resume", "x-sink"))
    started, frame = restore(hop(resumed, actor=decode(resumed).route.curr, spec=Actor(kind="crew"), now=NOW))
    assert started.envelope.route == Route(("prep", "approve"), "x-resume", ("post",))
    assert bytes(frame.payload or b"") == b'{"text":"hello","size":2.5}'
    assert started.status.deadline_at == "2026-11-20T09:32:00.500000Z"
    assert not any(name.startswith(("x-asya-pause", "x-asya-resume")) for name in started.envelope.headers)
    ended = decode(canceled).status
    assert ended is not None
    assert (ended.phase, ended.reason, ended.updated_at) == ("canceled", "Canceled", HANDOVER.at)


def test_reports_of_functions_and_their_answers(state: Recording) -> None:
    assert read_events(state.texts["events"].encode()) == EVENTS
    assert msgspec.json.decode(state.texts["taken"], type=EventResults) == TAKEN


def test_a_push_notification_on_its_way(state: Recording) -> None:
    assert msgspec.json.decode(state.messages["x-push"][0], type=PushNotification) == PUSH


@pytest.mark.parametrize("name", SHOWN)
def test_13_a_client_that_comes_back_says_what_it_has_seen(state: Recording, name: str) -> None:
    assert decode_cursor(state.texts[f"last event {name}"]) == SHOWN[name]


def test_13_what_is_settled_is_known_by_its_digest(state: Recording) -> None:
    found = decode_cursor(state.texts["last event settled"])
    assert found is not None
    assert isinstance(found.settled, Settled)
    assert found.expand(IRREGULAR.steps) == IRREGULAR
    assert found.expand({**IRREGULAR.steps, (0, 3): 1}) is None


def test_13_a_token_for_a_stream_counts_until_its_hour_is_over(state: Recording) -> None:
    token = state.texts["stream token"]
    ends_at = stream_tokens.read_expiry(token, NOW)
    assert ends_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    stream_tokens.verify(TOKEN_KEY, token, "order/7 ü", ends_at)
    assert stream_tokens.key_label("shop", ends_at) == state.texts["stream label"].encode()


def test_13_lists_go_on(state: Recording) -> None:
    asked = {"status": "running", "parent": "root", "cursor": state.texts["cursor of tasks"]}
    assert read_list_query(asked, "tasks", (str, str)).after == (f"{AT}#AIDA", "env-1")
    timeline = read_list_query({"cursor": state.texts["cursor of a timeline"]}, "timeline env-1", (int, int, int))
    assert timeline.after == (2, 7, 1)
    tools = tool_list(MANY_TOOLS, state.texts["cursor of tools"])
    assert tools.tools[0].name == state.texts["first tool of the next page"]


def test_13_a_call_that_waits_for_a_person_goes_on(state: Recording) -> None:
    assert read_request_state(state.texts["mcp request state"]) == ("order/7 ü", AT)


@pytest.mark.parametrize("name", requests())
def test_13_a_request_that_is_repeated_starts_nothing(
    state: Recording, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sqs = SentMessages()
    event, task_id = requests()[name]
    assert task_id(front(state, monkeypatch, sqs)(event)) == state.texts[f"started by {name}"]
    assert sqs.bodies == []


def test_13_owners_are_called_as_they_were(state: Recording) -> None:
    rules = AccessRules(TABLE, "123456789012", "eu-west-1")
    role = IamIdentity("arn:aws:sts::123456789012:assumed-role/Admin/x", "AROAADMIN:x")
    assert rules.caller(role).principal == state.texts["owner by role"] == "AROAADMIN"
    person = TokenIdentity("https://login.example.com/", "anna#1", {})
    assert rules.caller(person).principal == state.texts["owner by token"] == "jwt:anna#1#https://login.example.com/"


def test_the_table_of_actors(state: Recording) -> None:
    assert decode_table(state.texts["mesh.json"].encode()) == TABLE


def test_what_is_derived_from_ids_is_the_same(state: Recording) -> None:
    """A redelivery to another version makes the same ids, keys and tokens; else work would be done twice."""
    derived = derive()
    assert derived == {name: state.texts[name] for name in derived}


def derive() -> dict[str, str]:
    """Everything that is made from ids alone."""
    odd = "../order/7 ü#%\ud800."
    member = job_runs.Member(id=odd, position=3, attempt=2, admitted_at=AT, generation=1)
    return {
        "child": ids.child_id("env-1", 2, 3, 4),
        "failed child": ids.child_id("env-1", 2, 3, "error"),
        "suffixed child": ids.suffixed_id("env-1", 4) or "",
        "hook": ids.hook_id("env-1", 2, "audit"),
        "set": ids.set_id("env-1", 2, 3),
        "message": ids.id_of_message("0b5e7c1a-4b1f-4d7e-9a53-0a1f5b7c9d11"),
        "run": job_runs.run_id("shop", "crunch", 12),
        "run read back": repr(job_runs.parse_run_id("asya.shop.crunch.0000000012", "shop")),
        "run prefix": job_runs.run_prefix("crunch", 12),
        "scratch": job_runs.scratch_prefix("crunch", 12),
        "driver log": job_runs.driver_log_key("crunch", 12, "00app", "00f1"),
        "client token": client_token("asya.shop.crunch.0000000012", [member]),
        "segment": keys.safe_segment(odd),
        "sump key": keys.sump_key(odd),
        "pause key": keys.pause_key(odd, 1, 2),
        "hop key": keys.hop_key(keys.FRAMES_PREFIX, ENVELOPE),
        "checkpoint key": keys.checkpoint_key(ENVELOPE),
        **{
            f"{phase} key": keys.result_key(_ended(phase), Sink())
            for phase in ("succeeded", "failed", "canceled", "paused")
        },
        "key by time": keys.result_key(_ended("failed"), TABLE.sink),
    }


def _ended(phase: Any) -> Envelope:
    return msgspec.structs.replace(ENVELOPE, status=Status(phase=phase, updated_at=AT))
