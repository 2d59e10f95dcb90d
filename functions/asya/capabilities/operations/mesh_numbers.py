"""The mesh in numbers: its actors, who sends to whom, whether queues are read, and the settings of one actor."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import msgspec

from asya.protocol import names
from asya.protocol.mesh_table import Access, CircuitBreaker, MeshTable, Policy, Rule
from asya.protocol.times import format_time
from asya.sidecar.circuit_breaker import Circuit
from asya.tasks.view import TaskView

_STOPPED = frozenset({"Disabled", "Disabling"})
"""States of a mapping that does not read. `Creating`, `Enabling` and `Updating` pass by themselves."""
_RESTORE = "Delete the stack that has the function, and deploy: CloudFormation does not see what was deleted by hand"


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """Why no function reads a queue, and how that is repaired.

    Attributes:
        reason: such as `event source mapping disabled`.
        repair: a command to type, or what to do.
    """

    reason: str
    repair: str


@dataclass(frozen=True, slots=True)
class Mapping:
    """The event source mapping of a queue: its id and its state, as Lambda names them."""

    uuid: str
    state: str


@dataclass(frozen=True, slots=True)
class FunctionState:
    """What Lambda knows of a function.

    Attributes:
        exists: whether the function is there.
        reserved: its reserved concurrency; None without one.
    """

    exists: bool = True
    reserved: int | None = None


def unread(mapping: Mapping | None, function: FunctionState, name: str) -> Unread | None:
    """Return why a queue is not read; None if it is.

    Args:
        mapping: the event source mapping of the queue; None if it has none.
        function: the function that reads it.
        name: the name of the function.
    """
    if not function.exists:
        return Unread(reason=f"the function {name} is missing", repair=_RESTORE)
    if mapping is None:
        return Unread(reason="event source mapping missing", repair=_RESTORE)
    if mapping.state in _STOPPED:
        return Unread(
            reason="event source mapping disabled",
            repair=f"aws lambda update-event-source-mapping --uuid {mapping.uuid} --enabled",
        )
    if function.reserved == 0:
        return Unread(
            reason="reserved concurrency of the function is 0",
            repair=f"aws lambda delete-function-concurrency --function-name {name}",
        )
    return None


def queues_of(tasks: Iterable[TaskView]) -> list[str]:
    """Return the actors on whose queues the envelopes of tasks may wait: where each was last, and where it goes next."""
    found: set[str] = set()
    for task in tasks:
        if not task.is_active:
            continue
        if task.route is not None:
            found |= {task.route.curr, *task.route.next[:1]}
        if task.actor is not None:
            found.add(task.actor)
    return sorted(found - {""})


MINUTES = 5
"""The last minutes that a rate is of."""

CircuitState = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class QueueCount:
    """The approximate number of messages of a queue: those that wait, and those that are being processed."""

    waiting: int = 0
    in_flight: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """What CloudWatch knows of an actor; None without a value in the last minutes.

    Attributes:
        received, failed: hops in a minute.
        oldest: seconds that the oldest message has waited.
    """

    received: float | None = None
    failed: float | None = None
    oldest: float | None = None


class RunNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The job runs of a heavy actor.

    Attributes:
        pending: envelopes that wait for a run, up to 10,000.
        running: runs that are open.
        lingering: resident runs that take further envelopes.
        is_drained: whether its runs do not start.
    """

    pending: int
    running: int
    lingering: int
    is_drained: bool


class OpenCircuit(msgspec.Struct, frozen=True, kw_only=True):
    """Why calls of an actor are rejected, and until when (RFC 3339).

    Attributes:
        since: when the circuit opened.
        next_call_at: when a probe is allowed.
        error: the error of the last failed call.
        failures, window: so many failed calls within so many seconds open the circuit.
    """

    since: str | None
    next_call_at: str
    error: str
    failures: int
    window: float


class ActorNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """One actor.

    Attributes:
        kind: `handler`, `spark`, `fan_in`, `pause`, `end` or `crew`.
        waiting, in_flight, dead_letters: messages, approximately.
        oldest_seconds: how long the oldest message has waited; None if CloudWatch does not know it.
        per_minute, failing_per_minute: hops, and those that failed, of the last 5 minutes; None without a value.
        circuit: the state of the circuit breaker; None without one.
        open_circuit: of a circuit that is not closed.
        runs: of a heavy actor.
        not_read: why no function reads the queue; None if one does, or if it is unknown.
    """

    name: str
    kind: str
    waiting: int
    in_flight: int
    dead_letters: int
    oldest_seconds: float | None = None
    per_minute: float | None = None
    failing_per_minute: float | None = None
    circuit: CircuitState | None = None
    open_circuit: OpenCircuit | None = None
    runs: RunNumbers | None = None
    not_read: Unread | None = None


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who sends to whom: along the route of a tool, or because the mesh file says so."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    tool: str | None = None


class ToolRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the mesh file."""

    name: str
    route: list[str]


class MeshNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The whole mesh at one moment (RFC 3339)."""

    namespace: str
    at: str
    actors: list[ActorNumbers]
    edges: list[Edge]
    tools: list[ToolRoute]


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an actor's queue as SQS has them; seconds."""

    visibility_timeout: int
    retention: int
    max_receives: int | None


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """The milliseconds of a handler's calls in the last hour; None without a value."""

    median: float | None = None
    p95: float | None = None


class RecentError(msgspec.Struct, frozen=True, kw_only=True):
    """A task that has failed at the actor."""

    id: str
    at: str
    reason: str | None
    type: str
    message: str


class ActorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One actor with its settings.

    Attributes:
        timeout: seconds of a call.
        can_send_to: None for every actor.
        secrets: the names of the variables.
        access: what the mesh file grants beyond the mesh.
        recent_errors: the newest tasks that failed here, of about 1,000 failed ones of the mesh.
    """

    numbers: ActorNumbers
    queue: QueueState
    timeout: float
    batch_size: int
    frames: str
    keep_input: bool
    deduplicate: bool
    can_send_to: tuple[str, ...] | None
    secrets: list[str]
    access: tuple[Access, ...]
    policies: dict[str, Policy]
    rules: tuple[Rule, ...]
    circuit_breaker: CircuitBreaker | None
    durations: Durations
    recent_errors: list[RecentError]


def circuit_state(circuit: Circuit, now: datetime) -> CircuitState:
    """Return the state of a circuit: half-open from the moment at which a probe is allowed."""
    if circuit.open_until is None:
        return "closed"
    return "open" if now.timestamp() < circuit.open_until else "half-open"


def open_circuit(circuit: Circuit, limits: CircuitBreaker) -> OpenCircuit | None:
    """Return why a circuit is not closed; None for a closed one."""
    if circuit.open_until is None:
        return None
    return OpenCircuit(
        since=_time(circuit.opened_at) if circuit.opened_at is not None else None,
        next_call_at=_time(circuit.open_until),
        error=circuit.error,
        failures=limits.failures,
        window=limits.window,
    )


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def edges(mesh: MeshTable) -> list[Edge]:
    """Return who sends to whom, each pair once for each tool."""
    found = dict.fromkeys((*_tool_edges(mesh), *_setting_edges(mesh)))
    return sorted(found, key=lambda edge: (edge.source, edge.target, edge.tool or ""))


def _tool_edges(mesh: MeshTable) -> Iterator[Edge]:
    for name, tool in mesh.tools.items():
        for source, target in zip(tool.route, (*tool.route[1:], names.SINK), strict=True):
            yield Edge(source=source, target=target, tool=name)


def _setting_edges(mesh: MeshTable) -> Iterator[Edge]:
    for name, actor in mesh.actors.items():
        for target in actor.can_send_to or ():
            yield Edge(source=name, target=target)
        for policy in actor.resiliency.policies.values():
            if policy.then_route:
                yield Edge(source=name, target=policy.then_route[0])
    for hook in mesh.sink.hooks:
        yield Edge(source=names.SINK, target=hook)
