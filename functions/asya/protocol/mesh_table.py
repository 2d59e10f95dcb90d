"""The actor table of a mesh: the settings of all actors, for every function.

The table is the file `mesh.json` in the asset of each function, because environment variables hold 4 KB only. The
deployment writes it from the mesh file, and the functions read it. Durations are in seconds and sizes in bytes unless a
name says otherwise.
"""

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from asya.protocol.exact_json import exact_decoder, write_exact
from asya.protocol.mesh_keys import Form, Seconds, TaskTimeout, Texts
from asya.protocol.pause import Pause
from asya.protocol.triggers import Trigger, Webhook
from asya.protocol.wait import Wait

RETRY_ON_QUEUE = 86400.0
"""Seconds: a retry up to this delay waits on the queue of its actor, and a longer one in x-wait (`protocol §8.retry`)."""
# Longer than any mesh holds an envelope; x-wait knows how long this one does.
_ANY_WAIT = 10 * 366 * 86400.0


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A retry policy."""

    max_attempts: Annotated[int, Meta(ge=1, le=1000)] = 1
    """The number of attempts, including the first."""
    backoff: Literal["constant", "linear", "exponential"] = "exponential"
    initial_delay: Annotated[Seconds, Meta(ge=0)] = 1.0
    max_interval: Seconds | None = None
    jitter: bool = False
    max_duration: Seconds | None = None
    """No attempt starts later than this after the first one."""
    then_route: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """The route after the last attempt, instead of x-sink."""

    @property
    def longest_delay(self) -> float:
        """The cap on its delays, in seconds: a day, unless `max_interval` or `initial_delay` asks for more."""
        if self.max_interval is not None:
            return max(RETRY_ON_QUEUE, self.max_interval)
        return RETRY_ON_QUEUE if self.initial_delay <= RETRY_ON_QUEUE else _ANY_WAIT


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the policy for errors; the first matching rule applies."""

    errors: Annotated[Texts, Meta(min_length=1)]
    """Names of exception types. A qualified name matches exactly, a bare name matches the last part."""
    policy: str


class CircuitBreaker(msgspec.Struct, frozen=True, kw_only=True):
    """Stops the calls of a handler that keeps failing. All instances of its function share one state."""

    failures: Annotated[int, Meta(ge=1, le=1000)]
    window: Annotated[Seconds, Meta(gt=0)]
    """The breaker opens after `failures` failed calls within this time."""
    open_for: Annotated[Seconds, Meta(gt=0)]
    """How long the breaker rejects calls before a trial call."""


class Resiliency(msgspec.Struct, frozen=True, kw_only=True):
    """Retries and the circuit breaker for failures of a handler."""

    policies: dict[str, Policy] = {}
    rules: tuple[Rule, ...] = ()
    circuit_breaker: CircuitBreaker | None = None


class WorkerSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a Spark driver or executor: memory in megabytes, disk in gigabytes."""

    cores: int = 1
    memory_mb: int = 2048
    disk_gb: int | None = None


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the job of a heavy actor that are the same in the mesh file and at run time."""

    job: str
    """`module.function` in the `jobs` folder."""
    archives: tuple[str, ...] = ()
    """Archives (`s3://…`) that Spark unpacks for the job."""
    py_files: tuple[str, ...] = ()
    """Python files or zips (`s3://…`) that the job imports."""
    payload_schema: str | None = None
    """The type of the payload, for a job function with a DataFrame: a DDL text, or a model such as `shop.models.Order`."""
    max_run: Annotated[Seconds, Meta(ge=60)] = 6 * 3600.0
    """The time limit of a job run."""
    parallel: Annotated[int, Meta(ge=1, le=64)] = 1
    """The envelopes at work at the same time in a run, for a job function with one payload."""
    max_runs: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """The runs of this actor that are active at once, such as 1 for the only writer of a table; by default all that fit."""
    priority: Annotated[int, Meta(ge=0, le=100)] = 0
    """Whose run starts first when the application is full; the highest goes first."""
    linger: Annotated[Seconds, Meta(ge=0, le=3600)] = 0.0
    """How long an idle run waits for further envelopes, which it then gets within a second or two; it is billed meanwhile."""
    isolation: Literal["none", "tenant", "envelope"] = "none"
    """Who shares [a run and its driver](../explanation/heavy-actors.md#isolation): all envelopes, those of one tenant, for actors
    with `fair_by: owner`, or none."""


class JobSize(msgspec.Struct, frozen=True, kw_only=True):
    """A size of runs: the workers and settings of a job, with those of the actor where the mesh file names none.

    Attributes:
        up_to: the largest value at `size_by` that has this size; None for the last size, and without `size_by`.
    """

    name: str
    up_to: float | None = None
    driver: WorkerSize = WorkerSize()
    executor: WorkerSize = WorkerSize()
    min_executors: int = 0
    max_executors: int = 4
    conf: dict[str, str] = {}


class SparkJob(JobOptions, frozen=True, kw_only=True):
    """The job of a heavy actor and its size (mesh file, `spark`).

    Attributes:
        access: names the `access` of the actor, which a run has from its start on; empty if its runs do not linger.
        sizes: the sizes of its runs, in order; absent if all runs have the workers of the actor (`protocol §10.size`).
        size_by: the JSON pointer into the payload that selects a size; absent if each envelope begins with the first one.
    """

    driver: WorkerSize = WorkerSize()
    executor: WorkerSize = WorkerSize()
    min_executors: int = 0
    max_executors: int = 4
    conf: dict[str, str] = {}
    env: dict[str, str] = {}
    access: str = ""
    shape: Literal["payload", "dataframe"] = "payload"
    sizes: tuple[JobSize, ...] | UnsetType = UNSET
    size_by: str | UnsetType = UNSET


# The receives after which SQS makes a message a dead letter. The starts of the work on it are counted apart (`max_receives`), so
# this only ends what no function ever gets to: import errors, throttling, outages. Each receive may hide a message for the
# visibility timeout, at most half an hour, or for a quarter of an hour (`protocol §4.nack`). All of them end within the 4 days for
# which a queue keeps its messages: a message that a queue has kept for too long is no dead letter, but lost.
QUEUE_RECEIVES = 180
LONGEST_QUEUE_RECEIVES = 1000


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """How many envelopes are processed together."""

    size: Annotated[int, Meta(ge=1, le=10_000)] = 10
    """SQS messages per call of a light actor; envelopes per job run of a heavy one, by default 500."""
    window: Annotated[Seconds, Meta(ge=0)] = 0.0
    """How long to wait for a fuller batch; by default 15s for a heavy actor."""


class FanIn(msgspec.Struct, frozen=True, kw_only=True):
    """How the slices of a set are merged."""

    timeout: Annotated[Seconds, Meta(gt=0)] | None = None
    """By default what is left of the deadline; without a deadline, `ttl`."""
    on_failure: Literal["fail", "partial"] = "fail"
    quorum: Annotated[int, Meta(ge=1)] | None = None
    ttl: Annotated[Seconds, Meta(gt=0)] = 7 * 86400.0


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What the mesh file grants to an actor (mesh file, `access`). No function decides by it: operators read it.

    Attributes:
        name: of the bucket, table, secret or database; empty of a statement.
        location: the folder with the folders of a database's tables.
        read, write: patterns of keys, or of the tables of a database.
        statement: a raw IAM statement.
    """

    kind: Literal["bucket", "table", "secret", "database", "statement"]
    name: str = ""
    location: str | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    statement: dict[str, object] | None = None


FAIR_BY_OWNER = "owner"
"""The value of `fair_by` for the tenant that the mesh has proved. Any other one names a header, which callers write."""


class ActorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an actor that its function reads. `defaults` of the mesh file may set them for all actors."""

    timeout: Annotated[Seconds, Meta(gt=0)] = 30.0
    """Time limit of one handler call. A heavy actor has 15m by default, or `max_run` if that is shorter. For a light actor,
    timeout × batch size + 30 s must fit into Lambda's 15 minutes."""
    batch: Batch = Batch()
    """Light: SQS messages per invocation; more than 10 need a window of 1s to 300s. Heavy: envelopes per job run, and the wait
    for more, by default `{size: 500, window: 15s}`, 900s at most; a full batch waits for nothing. `size` is 10,000 at most."""
    max_receives: Annotated[int, Meta(ge=1, le=1000)] = 5
    """Starts of the work on a message that end with its process or with an unexpected error, before the message goes to the
    dead-letter queue, 1 to 1000. An outage of AWS is no start. With 1 the handler starts once at most."""
    resiliency: Resiliency = Resiliency()
    """[Retry policies, rules and a circuit breaker](#resiliency)."""
    deduplicate: bool = False
    """Whether a delivery of a hop that was completed before is dropped."""
    frames: Literal["streamed", "buffered"] = "streamed"
    """`buffered`: frames leave after the handler has ended without error."""
    handler_mode: Literal["payload", "envelope", "envelope-v1"] = "payload"
    """`envelope`, `envelope-v1`: the handler gets and returns whole envelopes."""
    fan_out_lists: bool = False
    """Whether a returned list is several frames."""
    validate: bool = True
    """Whether received envelopes are validated. `false` only for `kind: end`."""
    fair_by: Annotated[str, Meta(min_length=1)] | None = None
    """`owner`: who started the task is its tenant, as the gateway or the trigger has proved, or [a claim](#jwt) of the token.
    Any other value names a header, which who starts the task writes, so tenants can forge it. The tenant becomes the SQS
    `MessageGroupId`, so one tenant does not delay the others. The runs of a heavy actor take the tenants in turns."""


_CODE_KINDS = frozenset({"handler", "end", "spark"})
"""The kinds whose actors have a handler or a job of the user."""


class Actor(ActorOptions, frozen=True, kw_only=True):
    """One actor: its options, its kind, and what belongs to the kind.

    Attributes:
        gives_one_frame: whether the handler returns one payload, so it is no generator. Synthesis reads this from the
            code; False if the code does not show it.
        can_send_to: the actors that its role may send to; None for every actor.
        leads_to: the actors to which the routes of the mesh file lead from this one, behind fan-in actors and checkpoints. The crew
            may lead its envelopes there; its role may not send to them (`protocol §1.authority.edges`).
        options: the options that capabilities declare (`asya.option`); absent without any.
        own_code: true if a capability that the mesh file names declares its kind, whose code is the user's; absent otherwise.
    """

    kind: str
    handler: str | None = None
    spark: SparkJob | None = None
    fan_in: FanIn | None = None
    pause: Pause | None = None
    wait: Wait | None = None
    can_send_to: tuple[str, ...] | None = None
    leads_to: tuple[str, ...] = ()
    gives_one_frame: bool = False
    secrets: dict[str, str] = {}
    access: tuple[Access, ...] = ()
    options: dict[str, object] | UnsetType = UNSET
    own_code: bool | UnsetType = UNSET

    @property
    def continues(self) -> bool:
        """Whether it runs no code of users, and so continues the routes of others (`protocol §1.authority`)."""
        return self.kind not in _CODE_KINDS and self.own_code is not True

    @property
    def own_options(self) -> dict[str, object]:
        """The options that capabilities declare."""
        return {} if self.options is UNSET else self.options

    @property
    def queue_receives(self) -> int:
        """The receives after which SQS makes a message of the actor's queue a dead letter."""
        return min(LONGEST_QUEUE_RECEIVES, max(QUEUE_RECEIVES, 2 * self.max_receives))

    @property
    def pauses(self) -> bool:
        """Whether the actor pauses tasks: it asks a question, or its wait stops the deadline."""
        return self.kind == "pause" or (self.wait is not None and self.wait.deadline == "stands")

    @property
    def retries_after_days(self) -> bool:
        """Whether a retry policy asks for a delay that x-wait holds."""
        return any(policy.longest_delay > RETRY_ON_QUEUE for policy in self.resiliency.policies.values())


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool has in the mesh file and in the table: a route with a name."""

    description: str = ""
    route: Annotated[tuple[str, ...], Meta(min_length=1)] = ()
    """The actors in order; by default the actor with the name of the tool."""
    timeout: TaskTimeout = 300.0
    """The deadline of a task; by default 2h if the route has a heavy actor."""
    progress: bool = True


class Tool(ToolOptions, frozen=True, kw_only=True):
    """A tool of the gateway, with the JSON Schema of its input (`protocol §13`)."""

    input_schema: dict[str, object] = msgspec.field(default_factory=lambda: {"type": "object"})


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """The card of the mesh for other agents. Missing values come from the tools."""

    name: str | None = None
    description: str | None = None
    version: str | None = None
    skills: tuple[dict[str, object], ...] | None = None
    """The tools to show, each by its id. Other keys of a skill override the values of the tool."""


class SinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the mesh file and the table say alike of x-sink."""

    persist: bool = True
    large_only: bool = False
    """Whether a result has no object if the record of its task holds it."""
    layout: Literal["by-id", "by-time"] = "by-id"
    hooks: tuple[str, ...] = ()
    """The actors that get a copy of each ended envelope."""
    hooks_for_children: bool = False
    endpoint: Annotated[str, Form("address")] | None = None
    """The S3 endpoint of the ends that x-sink, x-sump and fan-in actors write, if it is not that of AWS."""


class Sink(SinkOptions, frozen=True, kw_only=True):
    """How x-sink handles ended envelopes (`protocol §11`). `index` turns the index of results on."""

    succeeded_prefix: str = "succeeded/"
    failed_prefix: str = "failed/"
    index: bool = False


BODY_LIMIT = 2900 * 1024
"""Bytes of the largest body that any call takes.

The body is a string in an event of Lambda, which has 6 MB at most. Each quote, backslash and line break counts twice in it. The
rest is for headers.
"""


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the gateway that the mesh file and the table have alike."""

    max_body: Annotated[int, Form("bytes")] = 256 * 1024
    long_polls: Annotated[int, Meta(ge=1, le=1000)] = 50
    """The calls of `/tools/call`, `/mcp` and `/a2a` that may wait for tasks at once; further ones get 429."""
    long_polls_per_caller: Annotated[int, Meta(ge=1, le=1000)] = 10
    """The calls of one caller that may wait at once."""
    foreign_gateways: tuple[Annotated[str, Form("host")], ...] = ()
    """The hosts of gateways of other meshes, which reports on envelopes of theirs may go to."""
    notification_hosts: tuple[Annotated[str, Form("host")], ...] = ()
    """The hosts that push notifications may go to although they are private, and without TLS."""
    starts: tuple[str, ...] | None = None
    """The actors at which callers who are no operators may start tasks by the API; left out, every actor. Tools stay open."""


class Gateway(GatewayOptions, frozen=True, kw_only=True):
    """The limits of the gateway, and the groups of calls that callers may make with a token (JWT)."""

    token_calls: tuple[str, ...] = ()
    # Absent in a mesh whose tenants are its callers.
    tenant_claim: str | UnsetType = UNSET


class SparkApplication(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of StartJobRun in the account, a steady rate and a burst, and the application.

    Attributes:
        max_concurrent_runs: the job runs of this mesh that are active at once; None if only the application has the limit.
        release: the release of EMR Serverless of the mesh's own application; None for an existing one.
    """

    start_per_second: float = 1.0
    start_burst: int = 25
    max_concurrent_runs: int | None = None
    release: str | None = None


class OwnCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of capabilities that the mesh file names, which no function of the product imports.

    Attributes:
        calls: each call (`asya.api_call`), with JSON Schema in place of types.
        schemas: the schemas that they refer to, by name.
    """

    calls: tuple[dict[str, object], ...] = ()
    schemas: dict[str, object] = {}


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long the mesh keeps state."""

    tasks: Annotated[Seconds, Meta(gt=0)] = 30 * 86400.0
    payloads: Annotated[Seconds, Meta(gt=0)] = 45 * 86400.0
    runs: Annotated[Seconds, Meta(gt=0)] = 14 * 86400.0
    # None for ever, or if the mesh does not know: in a bucket that is not its own.
    results: Annotated[float | None, Form("lifetime")] = None


_encoder = msgspec.json.Encoder(enc_hook=write_exact, order="deterministic")
# Raised when the form of messages or their meaning changes.
WIRE_VERSION = 1


class MeshLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a mesh, and who may exceed them."""

    max_hops: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    max_children: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """The children that one hop may give; the envelope of a hop that gives more fails."""
    operators: tuple[str, ...] = ()
    """Callers that may act on all tasks: IAM ARNs or claims of a token (`groups=mesh-operators`); `*` matches any text."""


class MeshTable(MeshLimits, frozen=True, kw_only=True):
    """The whole mesh: its namespace, its settings and all actors by name, including the crew.

    Attributes:
        capabilities: the packages of the capabilities that the mesh file names, each with the digest of its manifest.
        own_calls: their calls of the gateway.
        xray_share: the share of traces that X-Ray gets; None if spans do not go there.
        version: names this table and the form of its messages; empty if nothing gave it one.
    """

    namespace: str
    actors: dict[str, Actor]
    tools: dict[str, Tool] = {}
    triggers: dict[str, Trigger] = {}
    agent: Agent = Agent()
    sink: Sink = Sink()
    gateway: Gateway = Gateway()
    spark: SparkApplication = SparkApplication()
    retention: Retention = Retention()
    xray_share: float | None = None
    version: str = ""
    # Absent in a mesh with the product's capabilities alone.
    capabilities: dict[str, str] | UnsetType = UNSET
    own_calls: OwnCalls | UnsetType = UNSET

    @property
    def named_capabilities(self) -> dict[str, str]:
        """The capabilities that the mesh file names."""
        return {} if self.capabilities is UNSET else self.capabilities

    @property
    def has_callbacks(self) -> bool:
        """Whether links answer the pauses of an actor."""
        return any(actor.pause is not None and actor.pause.callback for actor in self.actors.values())

    @property
    def is_fair_by_owner(self) -> bool:
        """Whether an actor serves owners in turns, so that envelopes name theirs."""
        return any(actor.fair_by == FAIR_BY_OWNER for actor in self.actors.values())

    @property
    def webhooks(self) -> dict[str, Webhook]:
        """The webhooks by the name of their trigger."""
        return {name: trigger.webhook for name, trigger in self.triggers.items() if trigger.webhook is not None}


def with_version(table: MeshTable) -> MeshTable:
    """The table with its version: twelve hexadecimal digits of its digest and of the form of messages."""
    content = encode_table(replace(table, version=""))
    return replace(table, version=hashlib.sha256(b"%d:%b" % (WIRE_VERSION, content)).hexdigest()[:12])


def encode_table(table: MeshTable) -> bytes:
    """The content of `mesh.json`. Equal tables give equal bytes, so an unchanged function is not redeployed."""
    return msgspec.json.format(_encoder.encode(table), indent=1)


def decode_table(content: bytes) -> MeshTable:
    """Read `mesh.json`.

    Raises:
        ValueError: the content does not fit these types, because functions and layer have different versions.
    """
    try:
        return exact_decoder(MeshTable).decode(content)
    except msgspec.MsgspecError as error:
        raise ValueError(f"mesh.json does not fit this version of asya; deploy the mesh again: {error}") from error
