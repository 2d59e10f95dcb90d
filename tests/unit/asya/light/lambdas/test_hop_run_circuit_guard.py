"""protocol §8: the circuit breaker in the sidecar, before the handler call."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from asya.function.aws import clients
from asya.function.lambdas.environment import RealEnvironment
from asya.light.lambdas.hop_run import CIRCUIT_OPEN
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.codec import decode
from asya.protocol.mesh_table import CircuitBreaker, Policy, Resiliency, Rule
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.testing.dynamo.tables import MemoryDynamo, Table
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

TABLE = "asya-shop-breaker"
BREAKER = CircuitBreaker(failures=2, window=3600, open_for=3600)
BARE = Resiliency(circuit_breaker=BREAKER)
BRIEF = Resiliency(circuit_breaker=CircuitBreaker(failures=2, window=3600, open_for=60))


class StandingClock(RealEnvironment):
    """Its time of day stands still: a deadline is as far away when the handler begins, however slow the machine is."""

    def __init__(self) -> None:
        self._moment = super().now().replace(microsecond=0)

    def now(self) -> datetime:
        return self._moment


class Handler:
    """Fails as long as it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = True

    def __call__(self, payload: Any) -> Any:
        self.calls += 1
        if self.fails:
            raise ConnectionError("no answer")
        return payload


@pytest.fixture
def dynamo(monkeypatch: pytest.MonkeyPatch) -> MemoryDynamo:
    memory = MemoryDynamo({TABLE: Table(), "asya-shop-sink": Table()})
    monkeypatch.setattr(clients, "dynamodb", lambda: memory)
    return memory


def function(world: MeshWorld, handler: Callable[[Any], Any], resiliency: Resiliency = BARE, **spec: Any) -> Services:
    return world.light(handler, resiliency=resiliency, **spec)


def deliver(found: Services, *bodies: bytes | str) -> None:
    """Each message in a batch of its own, as different sidecars would get them: none remembers the circuit."""
    for body in bodies:
        assert batch_failures(build_sidecar(Services(found.settings, found.environment)).process(sqs_event(body))) == []


def open_circuit(found: Services) -> None:
    deliver(found, message(id="bad-1"), message(id="bad-2"))


def wait_until_half_open(dynamo: MemoryDynamo) -> None:
    for item in dynamo.tables[TABLE].items.values():
        item["open_until"] = {"N": "0"}


@pytest.mark.rule("13.problem")
def test_13_a_delayed_envelope_that_its_own_queue_refuses_has_a_problem(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    found = function(world, Handler(), BRIEF)
    open_circuit(found)
    world.sqs.refuse_always["asya-shop-infer"] = Refusal("call", "AccessDenied")
    assert batch_failures(build_sidecar(found).process(sqs_event(message()))) == ["message-0"]
    problem = [event.data.problem for event in world.gateway.events if event.data.problem is not None][-1]
    assert problem.message == "the queue of infer (asya-shop-infer) refuses messages of infer: AccessDenied"


@pytest.mark.rule("13.problem.circuit", "8.circuit-breaker.cause")
def test_13_a_delayed_envelope_has_a_problem_without_the_message_of_the_error(
    world: MeshWorld, dynamo: MemoryDynamo
) -> None:
    found = function(world, Handler(), BRIEF)
    open_circuit(found)
    deliver(found, message())
    (event,) = (event for event in world.gateway.events if event.data.problem is not None)
    problem = event.data.problem
    assert (event.id, event.status, problem.type) == ("env-1", "processing", "CircuitOpen")
    assert re.fullmatch(
        r"the circuit of infer is open since 20\S+Z, after ConnectionError; the next call is allowed at 20\S+Z",
        problem.message,
    )
    (item,) = dynamo.tables[TABLE].items.values()
    assert item["error"] == {"S": "ConnectionError: no answer"}


@pytest.mark.rule("8.circuit-breaker.delay")
def test_8_it_opens_and_delays_the_envelope_without_an_attempt(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    handler = Handler()
    found = function(world, handler, BRIEF)
    open_circuit(found)
    deliver(found, message(status=status(phase="retrying", attempt=2, max_attempts=3)))
    assert handler.calls == 2
    assert [failed.status.reason for failed in world.sent("x-sink") if failed.status] == ["RuntimeError"] * 2
    (delayed,) = world.messages("infer")
    assert 55 <= delayed.delay <= 90
    envelope = delayed.envelope
    assert envelope.status == decode(message(status=status(phase="retrying", attempt=2, max_attempts=3))).status
    assert (envelope.route, bytes(envelope.payload)) == (decode(message()).route, b'{"text":"hello"}')
    assert set(envelope.headers) == {"tenant", "x-asya-circuit-open-since"}

    handler.fails = False
    wait_until_half_open(dynamo)
    deliver(found, delayed.body)
    (onward,) = world.sent("post")
    assert "x-asya-circuit-open-since" not in onward.headers


@pytest.mark.rule("8.circuit-breaker.delay")
def test_8_the_creation_of_a_raw_envelope_stays(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    found = function(world, Handler(), BRIEF)
    open_circuit(found)
    deliver(found, message(status=...))
    (delayed,) = world.sent("infer")
    assert delayed.status is not None
    assert (delayed.status.phase, delayed.status.created_at) == ("pending", "2026-11-20T11:59:59.000000Z")


@pytest.mark.rule("8.circuit-breaker.delay")
def test_8_a_delay_beyond_the_deadline_is_a_timeout(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    found = function(world, Handler(), BRIEF)
    open_circuit(found)
    soon = format_time(datetime.now(UTC) + timedelta(seconds=20))
    deliver(found, message(status=status(deadline_at=soon)))
    ended = world.sent("x-sink")[-1].status
    assert ended is not None
    assert (ended.phase, ended.reason) == ("failed", "Timeout")
    assert ended.error is not None
    assert ended.error.type == CIRCUIT_OPEN
    assert ended.error.message.startswith("infer failed too often recently; the next call is allowed at")
    assert world.sent("infer") == []


@pytest.mark.rule("8.circuit-breaker.delay")
def test_8_after_a_day_of_delays_it_fails(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    found = function(world, Handler(), BRIEF)
    open_circuit(found)
    for hours, is_delayed in ((23, True), (25, False)):
        since = format_time(datetime.now(UTC) - timedelta(hours=hours))
        deliver(found, message(headers={"x-asya-circuit-open-since": since}))
        assert bool(world.sqs.sent.pop("asya-shop-infer", [])) == is_delayed
    ended = world.sent("x-sink")[-1].status
    assert ended is not None
    assert (ended.phase, ended.reason) == ("failed", "CircuitOpen")


@pytest.mark.rule("8.circuit-breaker.delay")
def test_8_a_delayed_attempt_is_no_completed_one(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemoryDynamo({TABLE: Table(), "asya-shop-hops": Table()})
    monkeypatch.setattr(clients, "dynamodb", lambda: memory)
    handler = Handler()
    found = function(world, handler, BRIEF, deduplicate=True)
    open_circuit(found)
    deliver(found, message())
    handler.fails = False
    wait_until_half_open(memory)
    deliver(found, world.messages("infer")[-1].body)
    assert [envelope.id for envelope in world.sent("post")] == ["env-1"]


def test_8_a_long_delay_says_when_it_is_due(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    found = function(world, Handler())
    open_circuit(found)
    deliver(found, message())
    (delayed,) = world.messages("infer")
    assert delayed.delay == 900
    assert "x-asya-not-before" in delayed.envelope.headers


@pytest.mark.rule("8.circuit-breaker.rule")
def test_8_a_rule_that_names_the_rejection_decides(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    rules = Resiliency(
        policies={"later": Policy(max_attempts=3, backoff="constant", initial_delay=7)},
        rules=(Rule(errors=("CircuitOpen",), policy="later"),),
        circuit_breaker=BREAKER,
    )
    found = function(world, Handler(), rules)
    open_circuit(found)
    deliver(found, message())
    (retried,) = world.messages("infer")
    assert (retried.envelope.id, retried.delay) == ("env-1", 7)
    assert retried.envelope.status is not None
    assert (retried.envelope.status.phase, retried.envelope.status.attempt) == ("retrying", 2)
    deliver(found, message(status=status(phase="retrying", attempt=3)))
    exhausted = world.sent("x-sink")[-1]
    assert exhausted.status is not None
    assert exhausted.status.reason == "PolicyExhausted"


def test_8_a_rejection_may_take_a_detour(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    detour = Resiliency(
        policies={"around": Policy(then_route=("rescue",))},
        rules=(Rule(errors=("CircuitOpen",), policy="around"),),
        circuit_breaker=BREAKER,
    )
    found = function(world, Handler(), detour)
    open_circuit(found)
    deliver(found, message())
    (routed,) = world.sent("rescue")
    assert routed.status is not None
    assert routed.status.reason == "PolicyRouted"


def test_8_retries_count_each_of_them(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    handler = Handler()
    always = Resiliency(policies={"default": Policy(max_attempts=9)}, circuit_breaker=BREAKER)
    found = function(world, handler, always)
    deliver(found, message())
    for _ in range(3):
        deliver(found, world.messages("infer")[-1].body)
    assert handler.calls == 2
    last = world.sent("infer")[-1]
    assert last.status is not None
    assert last.status.error is not None
    assert (last.status.attempt, last.status.error.type) == (3, "ConnectionError")


@pytest.mark.rule("8.circuit-breaker")
def test_8_one_probe_closes_it(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    handler = Handler()
    found = function(world, handler)
    open_circuit(found)
    wait_until_half_open(dynamo)
    handler.fails = False
    deliver(found, message(id="probe"), message(id="next"))
    assert [envelope.id for envelope in world.sent("post")] == ["probe", "next"]


def test_8_a_probe_that_fails_opens_it_again(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    handler = Handler()
    found = function(world, handler)
    open_circuit(found)
    wait_until_half_open(dynamo)
    deliver(found, message(id="probe"), message(id="next"))
    assert handler.calls == 3
    reasons = [envelope.status.reason for envelope in world.sent("x-sink") if envelope.status]
    assert reasons == ["RuntimeError"] * 3
    assert [envelope.id for envelope in world.sent("infer")] == ["next"]


def half_open_with(world: MeshWorld, dynamo: MemoryDynamo, probe: Callable[[Any], Any], **spec: Any) -> dict[str, Any]:
    """The circuit's item after this handler has probed."""
    open_circuit(function(world, Handler(), **spec))
    wait_until_half_open(dynamo)
    deliver(function(world, probe, **spec), message(id="probe"))
    (item,) = dynamo.tables[TABLE].items.values()
    return dict(item)


def crashes(_: Any) -> None:
    raise SystemExit(1)


def never_ends(_: Any) -> None:
    while True:
        pass


def leads_nowhere(payload: Any) -> Iterator[Any]:
    yield "SET", ".route.next", ["nobody"]
    yield payload


@pytest.mark.parametrize(
    ("probe", "is_open"),
    [(crashes, True), (never_ends, True), (leads_nowhere, False), (lambda _: None, False), (lambda _: {1}, True)],
)
def test_8_what_a_probe_tells(
    world: MeshWorld, dynamo: MemoryDynamo, probe: Callable[[Any], Any], is_open: bool
) -> None:
    item = half_open_with(world, dynamo, probe, timeout=0.2)
    assert ("open_until" in item) == is_open
    assert "probe" not in item


@pytest.mark.slow
def test_8_a_probe_whose_deadline_passes_tells_nothing(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    open_circuit(function(world, Handler()))
    wait_until_half_open(dynamo)
    clock = StandingClock()
    deadline = format_time(clock.now() + timedelta(seconds=1))
    probing = replace(function(world, never_ends), environment=clock)
    deliver(probing, message(id="probe", status=status(deadline_at=deadline)))
    (item,) = dynamo.tables[TABLE].items.values()
    assert float(item["open_until"]["N"]) == 0
    assert "probe" not in item


def test_8_what_never_reaches_the_handler_is_no_failure(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    found = function(world, Handler())
    deliver(
        found,
        message(payload={"n": 1}).replace(b'{"n":1}', b"1e999"),
        message(route={"prev": [], "curr": "post", "next": []}),
        b"no envelope",
        message(status=status(deadline_at="2020-01-01T00:00:00Z")),
    )
    assert dynamo.tables[TABLE].items == {}


def test_8_kept_frames_leave_though_the_circuit_is_open(world: MeshWorld, dynamo: MemoryDynamo) -> None:
    handler = Handler()
    handler.fails = False
    found = function(world, handler, frames="buffered")
    deliver(found, message())
    handler.fails = True
    open_circuit(found)
    deliver(found, message())
    assert [envelope.id for envelope in world.sent("post")] == ["env-1", "env-1"]


def test_8_an_actor_without_one_needs_no_table(world: MeshWorld) -> None:
    del world.dynamodb.tables["asya-shop-breaker"]  # a call of it raises
    handler = Handler()
    deliver(function(world, handler, Resiliency()), *(message(id=f"env-{n}") for n in range(3)))
    assert handler.calls == 3


def test_8_without_its_table_the_handler_is_called(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemoryDynamo):
        def get_item(self, **_: Any) -> dict[str, Any]:
            raise EndpointConnectionError(endpoint_url="x")

    monkeypatch.setattr(clients, "dynamodb", lambda: Broken({}))
    handler = Handler()
    handler.fails = False
    deliver(function(world, handler), message())
    assert [envelope.id for envelope in world.sent("post")] == ["env-1"]
    assert "circuit breaker unavailable" in caplog.text
