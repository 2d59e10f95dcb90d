"""The mesh's actor table: what every function of a mesh knows about all its actors.

It travels as the file `mesh.json` in each function's asset (environment variables end at 4 KB). The deployment writes it from
the user's mesh file, the functions read it; both through these types. Durations are seconds, sizes bytes unless said otherwise.
"""

from typing import Literal

import msgspec

from asya.protocol.pause import Pause

Kind = Literal["handler", "spark", "fan_in", "pause", "end", "crew"]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One retry policy (`protocol §8`)."""

    max_attempts: int = 1
    backoff: Literal["constant", "linear", "exponential"] = "exponential"
    initial_delay: float = 1.0
    max_interval: float | None = None
    jitter: bool = False
    max_duration: float | None = None
    then_route: tuple[str, ...] | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Which errors go by which policy; the first rule that matches decides (`protocol §8`)."""

    errors: tuple[str, ...]
    policy: str


class CircuitBreaker(msgspec.Struct, frozen=True, kw_only=True):
    """Opens after so many failures within `window` seconds, for `open_for` seconds (`protocol §8`)."""

    failures: int
    window: float
    open_for: float


class Resiliency(msgspec.Struct, frozen=True, kw_only=True):
    """An actor's policies by name, its ordered rules and its breaker."""

    policies: dict[str, Policy] = {}
    rules: tuple[Rule, ...] = ()
    circuit_breaker: CircuitBreaker | None = None


class WorkerSize(msgspec.Struct, frozen=True, kw_only=True):
    """What a Spark driver or executor gets; memory and disk in megabytes and gigabytes."""

    cores: int = 1
    memory_mb: int = 2048
    disk_gb: int | None = None


class SparkJob(msgspec.Struct, frozen=True, kw_only=True):
    """A heavy actor's job and its size (mesh file, `spark`)."""

    job: str
    driver: WorkerSize = WorkerSize()
    executor: WorkerSize = WorkerSize()
    min_executors: int = 0
    max_executors: int = 4
    conf: dict[str, str] = {}
    env: dict[str, str] = {}
    archives: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    payload_schema: str | None = None
    max_run: float = 6 * 3600.0
    shape: Literal["payload", "dataframe"] = "payload"


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """SQS batch of a light actor; envelopes per job run of a heavy one. The window is in seconds."""

    size: int = 10
    window: float = 0.0


class FanIn(msgspec.Struct, frozen=True, kw_only=True):
    """How a set of slices is put together: seconds to wait, what a lost slice means, seconds its state is kept."""

    timeout: float = 3600.0
    on_failure: Literal["fail", "partial"] = "fail"
    quorum: int | None = None
    ttl: float = 7 * 86400.0


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """One actor as its functions see it; defaults are those of the mesh file."""

    kind: Kind
    handler: str | None = None
    spark: SparkJob | None = None
    fan_in: FanIn | None = None
    pause: Pause | None = None
    timeout: float = 30.0
    batch: Batch = Batch()
    max_receives: int = 5
    resiliency: Resiliency = Resiliency()
    can_send_to: tuple[str, ...] | None = None
    deduplicate: bool = False
    keep_input: bool = False
    frames: Literal["streamed", "buffered"] = "streamed"
    handler_mode: Literal["payload", "envelope", "envelope-v1"] = "payload"
    fan_out_lists: bool = False
    child_ids: Literal["uuid", "suffix"] = "uuid"
    failed_payload: Literal["plain", "wrapped"] = "plain"
    validate: bool = True
    fair_by: str | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A route with a name and a schema, offered by the gateway (`protocol §13`). `input_schema` is a JSON Schema."""

    description: str
    route: tuple[str, ...]
    timeout: float = 300.0
    input_schema: dict[str, object] = msgspec.field(default_factory=lambda: {"type": "object"})
    progress: bool = True


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """How the mesh presents itself to other agents (`protocol §13`); what is missing comes from namespace and tools."""

    name: str | None = None
    description: str | None = None
    version: str | None = None
    skills: tuple[dict[str, object], ...] | None = None


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """What x-sink does with what ends (`protocol §11`). `index`: whether it keeps the index of results."""

    persist: bool = True
    layout: Literal["by-id", "by-time"] = "by-id"
    succeeded_prefix: str = "succeeded/"
    failed_prefix: str = "failed/"
    hooks: tuple[str, ...] = ()
    hooks_for_children: bool = False
    index: bool = False


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the gateway.

    `allowed_hosts` are hosts for status callbacks beside the mesh's own, and for push notifications although they are not
    public. `token_calls` are the groups of calls that callers may make with a token (JWT).
    """

    max_body: int = 256 * 1024
    allowed_hosts: tuple[str, ...] = ()
    token_calls: tuple[str, ...] = ()


class SparkApplication(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of StartJobRun in the account: a steady rate and a burst."""

    start_per_second: float = 1.0
    start_burst: int = 25
    max_concurrent_runs: int | None = None


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long state is kept, in seconds."""

    tasks: float = 30 * 86400.0
    payloads: float = 45 * 86400.0
    runs: float = 14 * 86400.0


class MeshTable(msgspec.Struct, frozen=True, kw_only=True):
    """The whole mesh: its namespace and every actor by name, the crew included."""

    namespace: str
    actors: dict[str, Actor]
    tools: dict[str, Tool] = {}
    agent: Agent = Agent()
    sink: Sink = Sink()
    gateway: Gateway = Gateway()
    spark: SparkApplication = SparkApplication()
    retention: Retention = Retention()
    max_hops: int = 1000
    operators: tuple[str, ...] = ()


def encode_table(table: MeshTable) -> bytes:
    """The content of `mesh.json`; the same table gives the same bytes, so that an unchanged function is not redeployed."""
    return msgspec.json.format(msgspec.json.encode(table, order="deterministic"), indent=1)


def decode_table(content: bytes) -> MeshTable:
    """Read `mesh.json`.

    Raises:
        ValueError: if the content does not have this shape (the functions and the layer are of different versions).
    """
    try:
        return msgspec.json.decode(content, type=MeshTable)
    except msgspec.MsgspecError as error:
        raise ValueError(f"mesh.json does not fit this version of asya: {error}") from error
