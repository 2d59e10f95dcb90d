"""The keys of one actor in the mesh file. Durations are seconds and sizes megabytes once read."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, WithJsonSchema

from asya.protocol.pause import DEFAULT_PROMPT
from asya_infra.mesh_file.base import Section, Text, Texts
from asya_infra.mesh_file.legacy.variables import END_ACTOR_VARIABLES, S3_ENDPOINT
from asya_infra.mesh_file.spark_model import SparkSection
from asya_infra.mesh_file.units import Duration, Megabytes

_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
_RESERVED_VARIABLES = ("AWS_", "ASYA_", "LAMBDA_", "POWERTOOLS_")
# Of these names some are a user's to set: the SDK's own setting, and what older end handlers look for.
_FREE_VARIABLES = (S3_ENDPOINT, *END_ACTOR_VARIABLES)


def _check_variables(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a variable: a letter, then letters, digits and _ (two or more)")
        if name.startswith(_RESERVED_VARIABLES) and name not in _FREE_VARIABLES:
            raise ValueError(f"{name!r} is reserved: variables of AWS, Lambda, Powertools and Asya are set for you")
    return env


Environment = Annotated[dict[str, Text], AfterValidator(_check_variables)]


def _pattern_list(value: Any) -> Any:
    if isinstance(value, bool):
        return ("*",) if value else ()
    return [value] if isinstance(value, str) else value


# `read: "raw/*"`, `read: [a/*, b/*]`, or `read: true` for everything.
Patterns = Annotated[
    tuple[str, ...],
    BeforeValidator(_pattern_list),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]}
    ),
]


class BatchSection(Section):
    """How many envelopes are taken at once."""

    size: int = Field(default=10, ge=1, le=10_000)
    """SQS messages per call of a light actor; envelopes per job run of a heavy one."""
    window: Duration = Field(default=0.0, ge=0)
    """How long to wait for a fuller batch."""


class Statement(Section):
    """One IAM statement, in the words of IAM's own JSON."""

    Effect: Literal["Allow", "Deny"] = "Allow"
    Action: Texts = Field(min_length=1)
    Resource: Texts = Field(min_length=1)
    Condition: dict[str, JsonValue] = Field(default={})


class AccessEntry(Section):
    """What an actor may read and write: one bucket, table or secret by name, or a raw IAM statement."""

    bucket: str | None = Field(default=None, min_length=1)
    """`data` and `results` are the mesh's own; anything else is the name of a bucket."""
    table: str | None = Field(default=None, min_length=1)
    """A DynamoDB table; patterns are those of partition keys."""
    secret: str | None = Field(default=None, min_length=1)
    """A secret of Secrets Manager."""
    read: Patterns = ()
    write: Patterns = ()
    statement: Statement | None = None


class PolicySection(Section):
    """One retry policy."""

    max_attempts: int = Field(default=1, ge=1, le=1000)
    """In total, the first included."""
    backoff: Literal["constant", "linear", "exponential"] = "exponential"
    initial_delay: Duration = Field(default=1.0, ge=0)
    max_interval: Duration | None = None
    jitter: bool = False
    max_duration: Duration | None = None
    """Time since the first attempt after which there is no further one."""
    then_route: tuple[str, ...] | None = Field(default=None, min_length=1)
    """The actors to go to when the attempts are used up, instead of x-sink."""


class RuleSection(Section):
    """Which errors go by which policy; the first rule that matches decides."""

    errors: Texts = Field(min_length=1)
    """Names of exception types; qualified ones match exactly, bare ones by their last part."""
    policy: str


class CircuitBreakerSection(Section):
    """Stops calling a handler that keeps failing; all its functions share one state."""

    failures: int = Field(ge=1, le=1000)
    window: Duration = Field(gt=0)
    """Within which so many calls have to fail."""
    open_for: Duration = Field(gt=0)
    """How long no call is made, before one of them is tried."""


class ResiliencySection(Section):
    """What happens when a handler fails."""

    policies: dict[str, PolicySection] = Field(default={})
    rules: tuple[RuleSection, ...] = ()
    circuit_breaker: CircuitBreakerSection | None = None


class FanInSection(Section):
    """How a set of slices is put together again."""

    timeout: Duration = Field(default=3600.0, gt=0)
    on_failure: Literal["fail", "partial"] = "fail"
    quorum: int | None = Field(default=None, ge=1)
    ttl: Duration = Field(default=7 * 86400.0, gt=0)


class PauseField(Section):
    """One thing to ask the person who resumes."""

    name: str = Field(min_length=1)
    type: Literal["string", "number", "boolean", "array", "object"]
    prompt: str = ""
    payload_key: str | None = None
    """JSON pointer into the payload; `/{name}` if missing."""
    required: bool = True
    default: JsonValue = None
    options: tuple[JsonValue, ...] | None = None


class PauseSection(Section):
    """What a pause asks for."""

    prompt: str = DEFAULT_PROMPT
    fields: tuple[PauseField, ...] = ()
    """Without any, a resume's input is merged at the payload's root."""
    notify: Texts = ()
    """Who is told: e-mail addresses, https:// addresses, ARNs of SQS queues."""


class ActorSettings(Section):
    """The keys that every kind of actor has, and that `defaults` may set for all of them."""

    timeout: Duration = Field(default=30.0, gt=0)
    """Of one handler call."""
    memory: Megabytes = Field(default=512, ge=128, le=10_240)
    batch: BatchSection = BatchSection()
    concurrency: int = Field(default=50, ge=2, le=1000)
    """How many instances of the function its queue may keep busy."""
    provisioned: int = Field(default=0, ge=0)
    """Instances that are kept warm."""
    max_receives: int = Field(default=5, ge=1, le=1000)
    """Receives before a message goes to the dead-letter queue."""
    env: Environment = Field(default={})
    """Environment variables of the handler or job."""
    access: tuple[AccessEntry, ...] = ()
    can_send_to: Texts | None = None
    """Actors it may route to; from the tools' routes if missing, or `*` for all."""
    resiliency: ResiliencySection = ResiliencySection()
    deduplicate: bool = False
    """Drop a hop that has been completed before."""
    keep_input: bool = False
    """Keep each hop's input for replay."""
    frames: Literal["streamed", "buffered"] = "streamed"
    handler_mode: Literal["payload", "envelope", "envelope-v1"] = "payload"
    fan_out_lists: bool = False
    """A returned list is several frames."""
    child_ids: Literal["uuid", "suffix"] = "uuid"
    failed_payload: Literal["plain", "wrapped"] = "plain"
    validate_: bool = Field(default=True, alias="validate")
    """Check arriving envelopes (only a user's own end actor goes without)."""
    fair_by: str | None = Field(default=None, min_length=1)
    """The header whose value is the tenant among whom the queue is fair."""


class ActorSection(ActorSettings):
    """One actor: `handler` makes it light, `spark` heavy, `kind` one of the special ones."""

    handler: str | None = None
    """`module.function` or `module.Class.method` in the `code` folder."""
    spark: SparkSection | None = None
    kind: Literal["fan_in", "pause", "end"] | None = None
    fan_in: FanInSection | None = None
    pause: PauseSection | None = None
