"""The mesh file as a whole. Durations are seconds, `max_body` is bytes once read."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, JsonValue

from asya.gateway.calls import Group
from asya.protocol import names
from asya_infra.mesh_file.actor_model import ActorSection, ActorSettings
from asya_infra.mesh_file.base import Section, Text, Texts
from asya_infra.mesh_file.spark_model import SparkSettings
from asya_infra.mesh_file.units import Bytes, Duration, Lifetime, Megabytes

_DAY = 86400.0


def _check_address(text: str) -> str:
    if not re.match(r"https?://[^/\s]+", text):
        raise ValueError(f"should be an address such as https://s3.example; got {text!r}")
    return text


class ToolSection(Section):
    """A route with a name and a schema, that people and agents call."""

    description: str = ""
    route: tuple[str, ...] = Field(default=(), min_length=1)
    """Actors in order; the actor of the tool's own name if missing."""
    timeout: Duration = Field(default=300.0, ge=2)
    input_schema: dict[str, JsonValue] = Field(default={"type": "object"})
    """JSON Schema of the arguments."""
    progress: bool = True


class AgentSection(Section):
    """The mesh's card for other agents; what is missing comes from the tools."""

    name: str | None = None
    description: str | None = None
    version: str | None = None
    skills: tuple[dict[str, JsonValue], ...] | None = None
    """Those of the tools that are shown, each named by its id; what else a skill says stands in for what the tool says."""


class SinkPrefixes(Section):
    """Where x-sink puts what succeeded and what failed, below the results prefix."""

    succeeded: str | None = None
    failed: str | None = None


class SinkSection(Section):
    """What happens with envelopes that are done."""

    persist: bool = True
    layout: Literal["by-id", "by-time"] = "by-id"
    prefixes: SinkPrefixes = SinkPrefixes()
    hooks: tuple[str, ...] = ()
    """Actors that get a copy of every terminal envelope."""
    hooks_for_children: bool = False
    index: bool = True
    endpoint: Annotated[str, AfterValidator(_check_address)] | None = None
    """Where x-sink and x-sump reach S3, if not at AWS's own address."""


class CrewActorSection(Section):
    """How one of the mesh's own end actors is deployed."""

    enabled: bool = True
    """Without its function its queue stays: somebody else has to empty it."""
    memory: Megabytes = Field(default=512, ge=128, le=10_240)
    batch_size: int = Field(default=10, ge=1, le=10)
    concurrency: int = Field(default=50, ge=2, le=1000)
    provisioned: int = Field(default=0, ge=0)


class CrewSection(Section):
    """How the ends of all routes are deployed."""

    sink: CrewActorSection = Field(default=CrewActorSection(), alias="x-sink")
    sump: CrewActorSection = Field(default=CrewActorSection(), alias="x-sump")

    def of(self, name: str) -> CrewActorSection:
        """The settings of one of the mesh's own actors; of all but these two as they are."""
        return {names.SINK: self.sink, names.SUMP: self.sump}.get(name, CrewActorSection())


class JwtSection(Section):
    """Whose tokens the gateway takes from people, at an HTTP API of its own."""

    issuer: str
    """As its tokens have it (`iss`); where it publishes its keys is found below it (OpenID Connect discovery)."""
    audience: Texts = Field(min_length=1)
    """Whom tokens are meant for (`aud`, or `client_id`): one of these."""
    calls: tuple[Group, ...] = Field(default=get_args(Group), min_length=1)
    """Which of people's calls may be made with a token."""


class GatewaySection(Section):
    """The HTTP interface."""

    jwt: JwtSection | None = None
    streaming: Literal["buffered", "adapter"] = "buffered"
    """How tasks are followed: by answers that end with what is new, or, at an API of its own, by one that goes on."""
    watchers: int = Field(default=50, ge=0, le=10_000)
    """How many may follow tasks at once; 0: as many as the account has calls left."""
    max_body: Bytes = 256 * 1024
    allowed_hosts: tuple[str, ...] = ()
    """Hosts, beside the mesh's own, that status callbacks may go to, and push notifications although they are not public."""


class RetentionSection(Section):
    """How long things are kept, in whole days; results may be kept for ever (`none`)."""

    tasks: Duration = Field(default=30 * _DAY, gt=0)
    payloads: Duration = Field(default=45 * _DAY, gt=0)
    runs: Duration = Field(default=14 * _DAY, gt=0)
    results: Lifetime = None


class StorageSection(Section):
    """Buckets that exist already, and how long things are kept."""

    data_bucket: str | None = Field(default=None, min_length=3, max_length=63)
    results_bucket: str | None = Field(default=None, min_length=3, max_length=63)
    retention: RetentionSection = RetentionSection()


class MeshFile(Section):
    """A mesh: its name, its actors and what they share."""

    namespace: str
    """A DNS label; part of every name."""
    code: str = "functions/handlers"
    """The folder of the light handlers, relative to this file."""
    jobs: str = "spark_jobs"
    """The folder of the heavy jobs, relative to this file."""
    defaults: ActorSettings = ActorSettings()
    """Settings that every actor has unless it says otherwise."""
    actors: dict[str, ActorSection] = Field(min_length=1)
    tools: dict[str, ToolSection] = Field(default={})
    agent: AgentSection | None = None
    sink: SinkSection = SinkSection()
    crew: CrewSection = CrewSection()
    gateway: GatewaySection = GatewaySection()
    spark: SparkSettings = SparkSettings()
    storage: StorageSection = StorageSection()
    max_hops: int = Field(default=1000, ge=1, le=100_000)
    operators: tuple[str, ...] = ()
    """Those who see and act on every task: IAM ARNs, or claims of a token (`groups=mesh-operators`); `*` stands for anything."""
    tags: dict[str, Text] = Field(default={})
    """Put on every resource."""
