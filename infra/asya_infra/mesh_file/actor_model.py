"""The keys of actors in the mesh file, and of the Spark application. Durations are in seconds, sizes in megabytes."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct, field
from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator

from asya.protocol.mesh_keys import After, Form, Seconds, Texts
from asya.protocol.mesh_table import ActorOptions, FanIn, JobOptions
from asya.protocol.pause import Pause
from asya.protocol.wait import Wait
from asya_infra.limits.aws_limits import IDLE_MINUTES
from asya_infra.mesh_file.deployment_model import VpcSection
from asya_infra.mesh_file.forms import Megabytes, OneOrMore, check_reference
from asya_infra.mesh_file.legacy.variables import END_ACTOR_VARIABLES, S3_ENDPOINT
from asya_infra.mesh_file.sections import Completed, Written

Catalog = Literal["none", "glue"]
Tables = Literal["parquet", "iceberg"]

_MEGABYTES = {"": 1.0, "b": 1 / 1024**2, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


class WorkerSection(Struct, frozen=True, kw_only=True):
    """The size of a driver or an executor."""

    cores: Literal[1, 2, 4, 8, 16] = 1
    memory: Annotated[Megabytes, Meta(ge=512)] = 2048
    """The heap of the JVM; EMR Serverless adds a tenth, at least 384 MB."""
    disk: Annotated[Megabytes, Meta(ge=20 * 1024, le=200 * 1024)] | None = None


class ExecutorsSection(WorkerSection, frozen=True, kw_only=True):
    """The size and the number of executors."""

    min: Annotated[int, Meta(ge=0)] = 0
    max: Annotated[int, Meta(ge=1)] = 4


class SizeWorkerSection(Struct, frozen=True, kw_only=True):
    """The keys in which the driver of a size differs from that of the actor."""

    cores: Literal[1, 2, 4, 8, 16] | None = None
    memory: Annotated[Megabytes, Meta(ge=512)] | None = None
    disk: Annotated[Megabytes, Meta(ge=20 * 1024, le=200 * 1024)] | None = None


class SizeExecutorsSection(SizeWorkerSection, frozen=True, kw_only=True):
    """The keys in which the executors of a size differ from those of the actor."""

    min: Annotated[int, Meta(ge=0)] | None = None
    max: Annotated[int, Meta(ge=1)] | None = None


class SizeSection(Struct, frozen=True, kw_only=True):
    """A size of runs."""

    up_to: float | None = None
    """The largest value at `size_by` that has this size; the last size has none."""
    driver: SizeWorkerSection = SizeWorkerSection()
    executors: SizeExecutorsSection = SizeExecutorsSection()
    conf: dict[str, str] = field(default_factory=dict)
    """Spark settings of this size, beside those of the job."""


class SparkSection(JobOptions, frozen=True, kw_only=True):
    """The job of a heavy actor."""

    driver: Annotated[WorkerSection, After("job")] = WorkerSection()
    executors: ExecutorsSection = ExecutorsSection()
    conf: dict[str, str] = field(default_factory=dict)
    """Spark settings of this job."""
    size_by: Annotated[str, Form("pointer")] | None = None
    """JSON pointer into the payload, to a number or a list whose length counts: it selects the size."""
    sizes: dict[str, SizeSection] = field(default_factory=dict)
    """[Sizes of runs](#sizes), in order: what differs from `driver`, `executors` and `conf`."""
    catalog: Annotated[Catalog | None, After("linger")] = None
    """`glue`: the tables of the Glue Data Catalog; by default that of the mesh."""
    tables: Tables | None = None
    """`iceberg`: Iceberg tables too; by default those of the mesh."""
    written: Written = field(default_factory=dict)


class WarmSection(Struct, frozen=True, kw_only=True):
    """Pre-initialized workers."""

    drivers: Annotated[int, Meta(ge=0)] = 0
    executors: Annotated[int, Meta(ge=0)] = 0


class ApplicationSection(Struct, frozen=True, kw_only=True):
    """The EMR Serverless application: an existing one by `id`, or a new one.

    With `id`, `max_vcpu` and `max_memory` state the capacity of the existing application.
    """

    id: Annotated[str, Meta(pattern=r"^[0-9a-z]{1,64}$")] | None = None
    release: Annotated[str, Meta(min_length=1)] = "emr-spark-8.1.0"
    architecture: Literal["arm64", "x86_64"] = "arm64"
    max_vcpu: Annotated[int, Meta(ge=2)] = 16
    max_memory: Megabytes | None = None
    """The maximum memory of all workers together; by default 8 GB per vCPU."""
    warm: WarmSection = WarmSection()
    max_concurrent_runs: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """The job runs that are active at once; by default those of the largest job that fit with all their executors."""
    oversubscribe: bool = False
    """Count `executors.min` instead of `executors.max` for `max_concurrent_runs`."""
    idle_stop: Annotated[Seconds, Meta(ge=60, le=60 * IDLE_MINUTES.value)] = 900.0
    """The application stops after this idle time, 7d at most."""
    vpc: VpcSection | None = None
    """The network of job runs; by default that of the mesh."""
    written: Written = {}


class StartRateSection(Struct, frozen=True, kw_only=True):
    """The rate limit for starting job runs."""

    per_second: Annotated[float, Meta(gt=0)] = 1.0
    burst: Annotated[int, Meta(ge=1)] = 25


class SparkSettings(Struct, frozen=True, kw_only=True):
    """The shared settings of all heavy actors."""

    application: ApplicationSection = ApplicationSection()
    start_rate: StartRateSection = StartRateSection()
    catalog: Catalog = "none"
    """`glue`: jobs find the tables of the Glue Data Catalog of the account and region."""
    tables: Tables = "parquet"
    """`iceberg`: jobs find Iceberg tables as `iceberg.database.table`; it needs `catalog: glue`."""


def conf_megabytes(text: str | None) -> int | None:
    """Return a memory size of Spark's settings (`512m`, `2g`; without a unit in megabytes), rounded up; else None."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([bkmgt]?)b?\s*", (text or "").lower())
    return None if match is None else -int(-(float(match[1]) * _MEGABYTES[match[2]]) // 1)


_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
# The defaults of a heavy actor: a cold run takes a minute, so it is worth to wait for more envelopes, and they take longer.
HEAVY_TIMEOUT = 900.0
_HEAVY_BATCH = {"size": 500, "window": 15.0}
_RESERVED_VARIABLES = ("AWS_", "ASYA_", "LAMBDA_", "POWERTOOLS_")
# Reserved by prefix, but free for users: a setting of the AWS SDKs, and the variables of legacy end handlers.
_ALLOWED_VARIABLES = (S3_ENDPOINT, *END_ACTOR_VARIABLES)


def _check_variables(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid variable name: use a letter, then one or more letters, digits or _"
            )
        if name.startswith(_RESERVED_VARIABLES) and name not in _ALLOWED_VARIABLES:
            raise ValueError(f"{name!r} is reserved: the mesh sets the variables of AWS, Lambda, Powertools and Asya")
    return env


def _check_secrets(secrets: dict[str, str]) -> dict[str, str]:
    for variable, reference in _check_variables(secrets).items():
        check_reference(reference, f"the text for {variable}")
    return secrets


Environment = Annotated[dict[str, str], AfterValidator(_check_variables)]
Secrets = Annotated[dict[str, str], AfterValidator(_check_secrets)]


def _pattern_list(value: Any) -> Any:
    if isinstance(value, bool):
        return ("*",) if value else ()
    return [value] if isinstance(value, str) else value


# `read: "raw/*"`, `read: [a/*, b/*]`, or `read: true` for all.
Patterns = Annotated[
    tuple[str, ...],
    BeforeValidator(_pattern_list),
    OneOrMore(or_flag=True),
]


class Statement(Struct, frozen=True, kw_only=True):
    """An IAM statement in the JSON form of IAM."""

    Effect: Literal["Allow", "Deny"] = "Allow"
    Action: Annotated[Texts, Meta(min_length=1)]
    Resource: Annotated[Texts, Meta(min_length=1)]
    Condition: dict[str, dict[str, Texts]] = {}


class AccessEntry(Struct, frozen=True, kw_only=True):
    """Grants access to one bucket, table, database or secret by name, or by a raw IAM statement."""

    bucket: Annotated[str, Meta(min_length=1)] | None = None
    """`data` or `results` of the mesh, or the name of a bucket."""
    table: Annotated[str, Meta(min_length=1)] | None = None
    """A DynamoDB table; the patterns match partition keys."""
    secret: Annotated[str, Meta(min_length=1)] | None = None
    """A secret of Secrets Manager."""
    database: Annotated[str, Meta(min_length=1)] | None = None
    """A database of the Glue Data Catalog; the patterns match its tables."""
    location: Annotated[str, Meta(min_length=1)] | None = None
    """The folder with the folders of a database's tables: `s3://bucket/folder`, or a reference below the data."""
    read: Patterns = ()
    write: Patterns = ()
    statement: Statement | None = None


class PollersSection(Struct, frozen=True, kw_only=True):
    """Pollers that Lambda keeps for the queue of one actor, instead of those that it starts on demand."""

    min: Annotated[int, Meta(ge=2, le=200)] = 2
    max: Annotated[int, Meta(ge=2, le=2000)] = 20


class PauseSection(Pause, frozen=True, kw_only=True):
    """The questions of a pause."""

    notify: Texts = ()
    """Receivers of notifications: e-mail addresses, https:// URLs, ARNs of SQS queues."""


class ActorSettings(ActorOptions, frozen=True, kw_only=True):
    """The keys of every kind of actor. `defaults` may set them for all actors."""

    memory: Annotated[Megabytes, Meta(ge=128, le=10_240), After("timeout")] = 512
    """Megabytes of the function, 128 to 10240."""
    concurrency: Annotated[int, Meta(ge=2, le=1000), After("batch")] = 50
    """Concurrent executions, 2 to 1000."""
    provisioned: Annotated[int, Meta(ge=0)] = 0
    """Instances kept warm (provisioned concurrency), at most `concurrency`."""
    reserved: Annotated[int, Meta(ge=2, le=1000)] | None = None
    """Reserved concurrency: executions that no other function of the account may use, at least `concurrency`. AWS refuses to
    leave less than 100 unreserved."""
    pollers: PollersSection | None = None
    """Provisioned pollers of the queue, such as `{min: 2, max: 20}`, for bursts that begin within seconds. They cost $0.00925 an
    hour each and exclude `concurrency`; an actor that sets one of both does not get the other from `defaults`."""
    env: Annotated[Environment, After("max_receives")] = field(default_factory=dict)
    """Environment variables of the handler or job, 3,000 characters in all. For keys and passwords use `secrets`."""
    access: tuple[AccessEntry, ...] = ()
    """[What the actor may read and write](#access)."""
    can_send_to: Texts | None = None
    """[Actors it may send to](#can_send_to), or `"*"` for all; by default they follow from the routes of the tools."""
    written: Written = field(default_factory=dict)


class ActorSection(ActorSettings, Completed, frozen=True, kw_only=True):
    """An actor: `handler` makes it light, `spark` makes it heavy, `kind` makes it a special actor."""

    handler: Annotated[str | None, After("fair_by")] = None
    """`module.function` or `module.Class.method` in the folder `code`. Synthesis checks that it exists, without running it."""
    spark: SparkSection | None = None
    """[A heavy actor's job](#heavy-actors)."""
    kind: str | None = None
    fan_in: FanIn | None = None
    """For `kind: fan_in`: [settings of a set](#fan-in-actors)."""
    pause: PauseSection | None = None
    """For `kind: pause`: [the question](#pause-actors)."""
    wait: Wait | None = None
    """For `kind: wait`: [for how long](#wait-actors)."""
    secrets: Secrets = field(default_factory=dict)
    """[Environment variables from Secrets Manager and Parameter Store](#secrets)."""

    def completed(self, written: Mapping[str, Any]) -> Self:
        """Return the actor with the defaults of a heavy one, where neither the actor nor `defaults` has a value."""
        if self.spark is None:
            return self
        missing = {key: value for key, value in _HEAVY_BATCH.items() if key not in written.get("batch", {})}
        timeout = self.timeout if "timeout" in written else min(HEAVY_TIMEOUT, self.spark.max_run)
        return replace(self, batch=replace(self.batch, **missing), timeout=timeout)
