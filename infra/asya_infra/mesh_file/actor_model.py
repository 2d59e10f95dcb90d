"""The keys of an actor in the mesh file. The model has durations in seconds and sizes in megabytes."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct, field
from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator

from asya.protocol.mesh_keys import After, Texts
from asya.protocol.mesh_table import ActorOptions, FanIn
from asya.protocol.pause import Pause
from asya.protocol.wait import Wait
from asya_infra.mesh_file.forms import OneOrMore, check_reference
from asya_infra.mesh_file.legacy.variables import END_ACTOR_VARIABLES, S3_ENDPOINT
from asya_infra.mesh_file.sections import Completed, Written
from asya_infra.mesh_file.spark_model import SparkSection
from asya_infra.mesh_file.units import Megabytes

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
    concurrency: Annotated[int, Meta(ge=2, le=1000), After("batch")] = 50
    """The maximum number of instances that process the queue at once."""
    provisioned: Annotated[int, Meta(ge=0)] = 0
    """Provisioned concurrency: instances that are always warm."""
    reserved: Annotated[int, Meta(ge=2, le=1000)] | None = None
    """Reserved concurrency: executions that no other function of the account may use."""
    pollers: PollersSection | None = None
    """Provisioned pollers of the queue, for bursts; excludes `concurrency`."""
    env: Annotated[Environment, After("max_receives")] = field(default_factory=dict)
    """Environment variables of the handler or job."""
    access: tuple[AccessEntry, ...] = ()
    can_send_to: Texts | None = None
    """The actors it may route to, or `*` for all; by default derived from the routes of the tools."""
    written: Written = field(default_factory=dict)


class ActorSection(ActorSettings, Completed, frozen=True, kw_only=True):
    """An actor: `handler` makes it light, `spark` makes it heavy, `kind` makes it a special actor."""

    handler: Annotated[str | None, After("fair_by")] = None
    """`module.function` or `module.Class.method` in the `code` folder."""
    spark: SparkSection | None = None
    kind: str | None = None
    fan_in: FanIn | None = None
    pause: PauseSection | None = None
    wait: Wait | None = None
    secrets: Secrets = field(default_factory=dict)
    """Variable → the name of a secret of Secrets Manager, or `ssm:` and the name of a parameter of Systems Manager."""

    def completed(self, written: Mapping[str, Any]) -> Self:
        """Return the actor with the defaults of a heavy one, where neither the actor nor `defaults` has a value."""
        if self.spark is None:
            return self
        missing = {key: value for key, value in _HEAVY_BATCH.items() if key not in written.get("batch", {})}
        timeout = self.timeout if "timeout" in written else min(HEAVY_TIMEOUT, self.spark.max_run)
        return replace(self, batch=replace(self.batch, **missing), timeout=timeout)
