"""What a capability declares of itself, as data (`manifest.py` in its folder). `asya.registry` has the manifests of all.

A manifest names its functions by their entry points and imports none of them. Synthesis, tools and local modes read manifests; no
function does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.api_call import ApiCall
from asya.function import sqs
from asya.monitoring import Alarm, Graph, Metric
from asya.needs import Need
from asya.option import Option
from asya.predicates import Predicate, always, is_actor, never
from asya.protocol.mesh_table import QUEUE_RECEIVES, MeshTable
from asya.senders.envelopes import ACTOR
from asya.senders.statements import Statement
from asya.stores import Prefix, Table

CREW_TIMEOUT = 120
"""Seconds of the functions of the crew, which run no code of users."""


@dataclass(frozen=True, kw_only=True)
class Queues:
    """SQS calls the function with batches of messages.

    Attributes:
        names: The queues; empty for the queue of the function's own name.
        batch: Messages per invocation, at most.
        window: Seconds that Lambda waits for a full batch.
        concurrency: Concurrent invocations for each queue, at most; None for as many as Lambda starts. An empty queue with a
            limit has five pollers in place of two, which cost more.
        receives: Receives before a message becomes a dead letter.
        retention_days: How long a queue keeps a message.
        has_envelopes: Whether its dead letters are envelopes, which the DLQ function ends.
    """

    names: tuple[str, ...] = ()
    batch: int = 10
    window: int = 0
    concurrency: int | None = 50
    receives: int = QUEUE_RECEIVES
    retention_days: int = sqs.QUEUE_RETENTION_DAYS
    has_envelopes: bool = True


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The clock of the mesh calls the function, which is one of its steps.

    The steps share a function of Lambda, its role and its log group (`protocol §11.clock`). So a step runs no code of users, and
    reads nothing that job runs have written.

    Attributes:
        minutes: The time between two calls.
        checks: What the function looks after, such as `the open sets of slices`.
        without: What stays undone while the function fails, as the alarm says.
    """

    minutes: int
    checks: str
    without: Callable[[MeshTable], str] | str

    def undone(self, mesh: MeshTable) -> str:
        """What stays undone in this mesh while the function fails."""
        return self.without if isinstance(self.without, str) else self.without(mesh)


@dataclass(frozen=True, kw_only=True)
class Schedule(Clock):
    """EventBridge calls the function, which has a role of its own.

    Attributes:
        rule: The name of the rule, without the prefix of the mesh.
    """

    rule: str

    @property
    def expression(self) -> str:
        """The schedule, as EventBridge takes it."""
        return f"rate({self.minutes} minute{'s' if self.minutes > 1 else ''})"


@dataclass(frozen=True, kw_only=True)
class Requests:
    """API Gateway calls the function.

    Attributes:
        changes: Whether a call may change something. The alarms leave out functions that only read.
    """

    changes: bool = True


@dataclass(frozen=True)
class TableChanges:
    """DynamoDB Streams calls the function with the changes of a table."""


@dataclass(frozen=True)
class Deployments:
    """CloudFormation calls the function during a deployment, which fails with it."""


Caller = Queues | Clock | Schedule | Requests | TableChanges | Deployments


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of the mesh's own.

    Attributes:
        name: The name of the function. An actor of the crew has the same name.
        entry_point: What Lambda calls: a module, and its attribute after the last dot.
        called_by: What calls the function.
        timeout: Seconds.
        memory: Megabytes.
        needs: What its role may do, besides its logs and what its caller takes.
        hears: What its queues take, and from whom.
        exists: Whether a mesh has the function.
        in_chains: Whether one chain of calls may pass the function many times, although no route contains it.
        traces: Whether the function records spans: it processes envelopes, or takes them in.
    """

    name: str
    entry_point: str
    called_by: Caller
    timeout: int
    memory: int = 512
    needs: tuple[Need, ...] = ()
    hears: tuple[Statement, ...] = ()
    exists: Predicate = always
    in_chains: Predicate = never
    traces: bool = False

    @property
    def is_in_layer(self) -> bool:
        """Whether the layer has its code, and not the folder of the mesh's own code."""
        return _is_in_layer(self.entry_point)

    @property
    def is_step(self) -> bool:
        """Whether the clock calls the function."""
        return isinstance(self.called_by, Clock) and not isinstance(self.called_by, Schedule)

    @property
    def queues(self) -> Queues | None:
        """The queues that call the function; None if something else does."""
        return self.called_by if isinstance(self.called_by, Queues) else None


@dataclass(frozen=True, kw_only=True)
class ActorFunction:
    """The function of each actor of a kind.

    Attributes:
        kind: The kind, as the actor table has it.
        is_named: Whether `kind` in the mesh file names it; other kinds have a key of their own.
        text: What its actors do, for the page of keys and the schema.
        passes_payloads: Whether its actors pass payloads on as they came, so the next actor gets what the one before gives.
        entry_point: What Lambda calls: a module, and its attribute after the last dot.
        timeout: Seconds; None for the time that the calls of a batch may take.
        queues: The batches of the actor's queue; None for those of the mesh file, as code of users needs. Concurrency and
            receives are always those of the mesh file.
        needs: What its role may do, besides its logs, its queue, and the `access` and `secrets` of the mesh file.
        hears: What the queue takes, and from whom.
        crew: Actors of this kind that a mesh has if it names them. The mesh file may give them settings.
        on_demand: Actors of this kind that a mesh gets when it needs them.
    """

    kind: str
    entry_point: str
    timeout: int | None = None
    queues: Queues | None = None
    needs: tuple[Need, ...] = ()
    hears: tuple[Statement, ...] = ACTOR
    crew: tuple[str, ...] = ()
    on_demand: tuple[str, ...] = ()
    is_named: bool = True
    text: str = ""
    passes_payloads: bool = False

    @property
    def is_in_layer(self) -> bool:
        """Whether the layer has its code, and not the folder of the mesh's own code."""
        return _is_in_layer(self.entry_point)


def _is_in_layer(entry_point: str) -> bool:
    return entry_point.startswith("asya.")


@dataclass(frozen=True, kw_only=True)
class Command:
    """A subcommand of `asya`, which the folder of the mesh file has.

    Attributes:
        name: Its name.
        entry_point: The function, or the `typer.Typer` of several: a module, and its attribute after the last dot.
        text: What it does, in a line.
    """

    name: str
    entry_point: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Capability:
    """What a mesh can do, declared once (`CAPABILITY` in a manifest).

    Attributes:
        name: The name of its folder.
        functions: The functions of the mesh's own, and those of actors by kind.
        options: The options of actors, beside those of `asya.protocol.mesh_table`.
        option_needs: By the key of an option, what the roles of actors with another value than the default may do besides.
        calls: The calls of the gateway, beside those of `asya.gateway.call_table`.
        commands: The subcommands of `asya`, beside those of `asya_cli`.
        metrics: The metrics that its functions write.
        alarms: The alarms of a mesh.
        graphs: The graphs on its dashboards.
        tables: The tables that it owns; other capabilities may need them too.
        prefixes: The prefixes that it owns, with the lifetime of their objects.
    """

    name: str
    functions: tuple[Function | ActorFunction, ...] = ()
    options: tuple[Option[Any], ...] = ()
    option_needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    calls: tuple[ApiCall, ...] = ()
    commands: tuple[Command, ...] = ()
    metrics: tuple[Metric, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    graphs: tuple[Graph, ...] = ()
    tables: tuple[Table, ...] = ()
    prefixes: tuple[Prefix, ...] = ()


def crew_actor(
    name: str,
    entry_point: str,
    needs: tuple[Need, ...],
    hears: tuple[Statement, ...],
    *,
    in_chains: Predicate = never,
) -> Function:
    """Declare the function of an actor of the crew. The actor table has the actor if the mesh uses it (`protocol §1.crew`)."""
    return Function(
        name=name,
        entry_point=entry_point,
        called_by=Queues(),
        timeout=CREW_TIMEOUT,
        needs=needs,
        hears=hears,
        exists=is_actor,
        in_chains=in_chains,
        traces=True,
    )
