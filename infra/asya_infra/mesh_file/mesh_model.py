"""The keys of the mesh file. The model has durations in seconds and `max_body` in bytes."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from msgspec import Meta, Struct, field
from msgspec.structs import replace
from pydantic import AfterValidator, JsonValue, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator
from pydantic_core import PydanticCustomError

from asya.api_call import Group
from asya.protocol import names
from asya.protocol.mesh_keys import After, Seconds, Texts
from asya.protocol.mesh_table import Agent, GatewayOptions, MeshLimits, Retention, Sink, SinkOptions, ToolOptions
from asya.protocol.triggers import Trigger
from asya_infra.mesh_file.actor_model import ActorSection, ActorSettings, SparkSettings
from asya_infra.mesh_file.deployment_model import Account, KmsKey, Region, TelemetrySection, VpcSection
from asya_infra.mesh_file.forms import Megabytes
from asya_infra.mesh_file.notify_model import NotifySection
from asya_infra.mesh_file.sections import Completed, Written
from asya_infra.placement import MOST_SHARDS

SOURCES = ("cron", "s3", "event", "webhook")


class TriggerSection(Trigger, frozen=True, kw_only=True):
    """A trigger: one source, and the task that each occurrence starts."""

    written: Written = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the trigger names."""
        found = dict(zip(SOURCES, (self.cron, self.objects, self.event, self.webhook), strict=True))
        return tuple(name for name, source in found.items() if source is not None)


# The default of a tool whose route has a heavy actor: its run may wait for capacity, and for an application that starts.
HEAVY_TOOL_TIMEOUT = 2 * 3600.0


def _check_schema(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", value):
        raise ValueError(f"should be a JSON Schema, or a model such as shop.models.Order; got {value!r}")
    if not isinstance(value, dict | str):
        raise PydanticCustomError("dict_type", "Input should be a valid dictionary")
    return validate(value)


InputSchema = Annotated[dict[str, JsonValue] | str, WrapValidator(_check_schema)]

_SINK_PREFIXES = {"by-id": (Sink().succeeded_prefix, Sink().failed_prefix), "by-time": ("happy-asya/", "error-asya/")}
_ANY_OBJECT: dict[str, JsonValue] = {"type": "object"}

# `mesh_file.stages` merges a stage into the file before the values are validated, and `schema` describes them.
Stages = dict[str, dict[str, JsonValue]]


class ToolSection(ToolOptions, frozen=True, kw_only=True):
    """A route with a name and a schema, for callers and agents."""

    input_schema: Annotated[InputSchema, After("timeout")] = field(default_factory=_ANY_OBJECT.copy)
    """The JSON Schema of the arguments, or a model in the `code` folder, such as `shop.models.Order`."""

    @property
    def json_schema(self) -> dict[str, JsonValue]:
        """The schema; anything for a model that has not been read (`asya_infra.contracts`)."""
        return dict(self.input_schema) if isinstance(self.input_schema, dict) else _ANY_OBJECT


class SinkPrefixes(Struct, frozen=True, kw_only=True):
    """The prefixes of succeeded and failed envelopes, relative to the results."""

    succeeded: str | None = None
    failed: str | None = None


def _folder(prefix: str) -> str:
    return prefix.rstrip("/") + "/"


class SinkSection(SinkOptions, frozen=True, kw_only=True):
    """How x-sink stores ended envelopes."""

    prefixes: Annotated[SinkPrefixes, After("layout")] = SinkPrefixes()
    index: Annotated[bool, After("hooks_for_children")] = True

    @property
    def folders(self) -> tuple[str, str]:
        """The prefixes of succeeded and failed envelopes, each with a slash at its end."""
        succeeded, failed = _SINK_PREFIXES[self.layout]
        return _folder(self.prefixes.succeeded or succeeded), _folder(self.prefixes.failed or failed)


class CrewActorSection(Struct, frozen=True, kw_only=True):
    """The deployment of x-sink or x-sump."""

    enabled: bool = True
    """If false, no function reads the queue of the actor; another consumer must empty it."""
    memory: Annotated[Megabytes, Meta(ge=128, le=10_240)] = 512
    """Both share a function, with the larger memory of the two."""
    batch_size: Annotated[int, Meta(ge=1, le=10)] = 10
    concurrency: Annotated[int, Meta(ge=2, le=1000)] | None = None
    """Concurrent executions, at most; by default as many as Lambda starts. With a limit Lambda polls the empty queue more often."""
    provisioned: Annotated[int, Meta(ge=0)] = 0


def _check_routable(name: str) -> str:
    if name not in names.ROUTABLE_CREW:
        raise ValueError(f"should be one of {', '.join(sorted(names.ROUTABLE_CREW))}; got {name!r}")
    return name


RoutableCrew = Annotated[
    str, AfterValidator(_check_routable), WithJsonSchema({"type": "string", "enum": sorted(names.ROUTABLE_CREW)})
]


class CrewSection(Struct, frozen=True, kw_only=True):
    """The deployment of the end actors, and the other actors of the crew that the mesh needs."""

    sink: CrewActorSection = field(default=CrewActorSection(), name="x-sink")
    sump: CrewActorSection = field(default=CrewActorSection(), name="x-sump")
    routable: tuple[RoutableCrew, ...] = ()
    """The actors of the crew that only the routes of senders name. Those that this file or its code names are there anyway."""

    def of(self, name: str) -> CrewActorSection:
        """Return the settings of a crew actor; the defaults for all but x-sink and x-sump."""
        return {names.SINK: self.sink, names.SUMP: self.sump}.get(name, CrewActorSection())


class JwtSection(Struct, frozen=True, kw_only=True):
    """The tokens that the gateway accepts, at its own HTTP API."""

    issuer: str
    """The issuer (`iss`) of the tokens; OpenID Connect discovery finds its keys."""
    audience: Annotated[Texts, Meta(min_length=1)]
    """The accepted audiences (`aud`, or `client_id`)."""
    calls: Annotated[tuple[Group, ...], Meta(min_length=1)] = get_args(Group)
    """The groups of calls that accept tokens."""
    tenant: Annotated[str, Meta(pattern=r"^[^=*#]{1,128}$")] | None = None
    """The claim that names the tenant of a caller's tasks, for actors with `fair_by: owner`; by default each subject is one."""


class GatewaySection(GatewayOptions, frozen=True, kw_only=True):
    """The HTTP interface."""

    jwt: Annotated[JwtSection | None, After("")] = None
    streaming: Literal["buffered", "adapter"] = "buffered"
    """Streams: `buffered` answers end with the new events; `adapter` adds an API with continuous streams."""
    watchers: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """The reserved concurrency of streams, and the number of clients at once; 0 reserves and limits nothing."""


class RetentionSection(Retention, frozen=True, kw_only=True):
    """Retention in whole days; `none` keeps results forever."""

    logs: Annotated[Seconds, Meta(gt=0)] = 30 * 86400.0
    """The logs of functions and APIs; a number of days that CloudWatch offers."""


class StorageSection(Struct, frozen=True, kw_only=True):
    """Existing buckets, encryption, retention, and what the removal of the mesh deletes."""

    data_bucket: Annotated[str, Meta(min_length=3, max_length=63)] | None = None
    results_bucket: Annotated[str, Meta(min_length=3, max_length=63)] | None = None
    kms_key: KmsKey | None = None
    """The customer managed key that encrypts the data of the mesh: bucket, tables, queues, logs. By default keys of AWS."""
    retention: RetentionSection = RetentionSection()
    removal: Literal["keep", "delete"] = "keep"
    """If the mesh is removed: `keep` its tables and its bucket, or `delete` them. A bucket with objects is never deleted."""


class MeshFile(MeshLimits, Completed, frozen=True, kw_only=True):
    """A mesh: its namespace, its actors and their shared settings."""

    namespace: Annotated[str, After("")]
    """A DNS label; every resource name contains it."""
    code: str = "functions/handlers"
    """The folder of the handlers, relative to this file."""
    jobs: str = "spark_jobs"
    """The folder of the job functions, relative to this file."""
    capabilities: tuple[str, ...] = ()
    """Packages in the `code` folder whose `manifest.py` declares a capability: kinds of actors, options, functions, calls."""
    requirements_hashes: Literal["optional", "required"] = "optional"
    """`required`: the packages of `requirements.txt` in both folders are installed only if each is pinned with hashes."""
    defaults: ActorSettings = ActorSettings()
    """Default settings of all actors."""
    actors: Annotated[dict[str, ActorSection], Meta(min_length=1)]
    tools: dict[str, ToolSection] = field(default_factory=dict)
    triggers: dict[str, TriggerSection] = field(default_factory=dict)
    run_triggers: bool | None = None
    """Whether triggers start tasks; by default they do without a stage, and not in a stage."""
    agent: Agent | None = None
    sink: SinkSection = SinkSection()
    crew: CrewSection = CrewSection()
    gateway: GatewaySection = GatewaySection()
    spark: SparkSettings = SparkSettings()
    storage: StorageSection = StorageSection()
    notify: NotifySection = NotifySection()
    telemetry: TelemetrySection = TelemetrySection()
    shards: Annotated[int, Meta(ge=1, le=MOST_SHARDS)] = 1
    """The stacks of queues, and of functions, over which the actors are spread: 8 for more than about 60 actors. The first
    deployment fixes the number, because another one moves queues."""
    tags: Annotated[dict[str, str], After("operators")] = field(default_factory=dict)
    """Tags of all resources."""
    account: Account | None = None
    """The AWS account to deploy to; other credentials are refused. By default that of the credentials."""
    region: Region | None = None
    """The AWS region to deploy to; by default that of the credentials."""
    vpc: VpcSection | None = None
    """The network of user code: the functions of light actors, and the job runs of the mesh's own Spark application."""
    permissions_boundary: (
        Annotated[str, Meta(pattern=r"^(arn:[^:]+:iam::(\d{12}|aws):policy/)?[\w+=,.@/-]+$")] | None
    ) = None
    """The policy, by name or ARN, that limits every role of the mesh."""
    bootstrap_qualifier: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,10}$")] = "hnb659fds"
    """The qualifier of `cdk bootstrap`."""
    stages: Stages = field(default_factory=dict)
    """Stage → values over those of the file."""

    def completed(self, written: Mapping[str, Any]) -> Self:
        """Return the mesh with the timeouts of tools with a heavy actor, and the catalogs of heavy actors."""
        tools = {
            name: replace(tool, timeout=HEAVY_TOOL_TIMEOUT)
            if "timeout" not in written["tools"][name] and self._is_heavy(tool.route or (name,))
            else tool
            for name, tool in self.tools.items()
        }
        actors = {name: self._with_catalog(actor) for name, actor in self.actors.items()}
        return replace(self, tools=tools, actors=actors)

    def _is_heavy(self, route: Sequence[str]) -> bool:
        return any(actor in self.actors and self.actors[actor].spark for actor in route)

    def _with_catalog(self, actor: ActorSection) -> ActorSection:
        if actor.spark is None:
            return actor
        catalog, tables = actor.spark.catalog or self.spark.catalog, actor.spark.tables or self.spark.tables
        return replace(actor, spark=replace(actor.spark, catalog=catalog, tables=tables))

    @property
    def requires_hashes(self) -> bool:
        """Whether the user's required packages need hashes."""
        return self.requirements_hashes == "required"
