"""The keys of an actor in the mesh file. The model has durations in seconds and sizes in megabytes."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct, field
from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, JsonValue

from asya.protocol.pause import DEFAULT_PROMPT
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.mesh_file.legacy.variables import END_ACTOR_VARIABLES, S3_ENDPOINT
from asya_infra.mesh_file.sections import Completed, OneOrMore, Texts, Written
from asya_infra.mesh_file.spark_model import SparkSection
from asya_infra.mesh_file.units import Duration, Megabytes

_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}")
_PARAMETER = re.compile(r"(/?[A-Za-z0-9_.-]+)(/[A-Za-z0-9_.-]+)*")
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


def check_reference(reference: str, what: str = "the text") -> str:
    """Return the name of a secret or, after `ssm:`, of a parameter.

    Raises:
        ValueError: the text is no such name; the message does not have it, because it may be a secret.
    """
    is_parameter = reference.startswith(PARAMETER_PREFIX)
    if not (_PARAMETER if is_parameter else _SECRET).fullmatch(reference.removeprefix(PARAMETER_PREFIX)):
        kind = "a parameter of Systems Manager" if is_parameter else "a secret of Secrets Manager"
        raise ValueError(f"{what} is not the name of {kind}; the mesh file has names, never values")
    return reference


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


class BatchSection(Struct, frozen=True, kw_only=True):
    """How many envelopes are processed together."""

    size: Annotated[int, Meta(ge=1, le=10_000)] = 10
    """SQS messages per call of a light actor; envelopes per job run of a heavy one, by default 500."""
    window: Annotated[Duration, Meta(ge=0)] = 0.0
    """How long to wait for a fuller batch; by default 15s for a heavy actor."""


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


class PolicySection(Struct, frozen=True, kw_only=True):
    """A retry policy."""

    max_attempts: Annotated[int, Meta(ge=1, le=1000)] = 1
    """The number of attempts, including the first."""
    backoff: Literal["constant", "linear", "exponential"] = "exponential"
    initial_delay: Annotated[Duration, Meta(ge=0)] = 1.0
    max_interval: Duration | None = None
    jitter: bool = False
    max_duration: Duration | None = None
    """No attempt starts later than this after the first one."""
    then_route: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """The route after the last attempt, instead of x-sink."""


class RuleSection(Struct, frozen=True, kw_only=True):
    """Selects the policy for errors; the first matching rule applies."""

    errors: Annotated[Texts, Meta(min_length=1)]
    """Names of exception types. A qualified name matches exactly, a bare name matches the last part."""
    policy: str


class CircuitBreakerSection(Struct, frozen=True, kw_only=True):
    """Stops the calls of a handler that keeps failing. All instances of its function share one state."""

    failures: Annotated[int, Meta(ge=1, le=1000)]
    window: Annotated[Duration, Meta(gt=0)]
    """The breaker opens after `failures` failed calls within this time."""
    open_for: Annotated[Duration, Meta(gt=0)]
    """How long the breaker rejects calls before a trial call."""


class ResiliencySection(Struct, frozen=True, kw_only=True):
    """Retries and the circuit breaker for failures of a handler."""

    policies: dict[str, PolicySection] = {}
    rules: tuple[RuleSection, ...] = ()
    circuit_breaker: CircuitBreakerSection | None = None


class FanInSection(Struct, frozen=True, kw_only=True):
    """How the slices of a set are merged."""

    timeout: Annotated[Duration, Meta(gt=0)] | None = None
    """By default what is left of the deadline; without a deadline, `ttl`."""
    on_failure: Literal["fail", "partial"] = "fail"
    quorum: Annotated[int, Meta(ge=1)] | None = None
    ttl: Annotated[Duration, Meta(gt=0)] = 7 * 86400.0


class PauseField(Struct, frozen=True, kw_only=True):
    """A question for the caller who resumes the task."""

    name: Annotated[str, Meta(min_length=1)]
    type: Literal["string", "number", "boolean", "array", "object"]
    prompt: str = ""
    payload_key: str | None = None
    """A JSON pointer into the payload, by default `/{name}`."""
    required: bool = True
    default: JsonValue = None
    options: tuple[JsonValue, ...] | None = None


class PauseSection(Struct, frozen=True, kw_only=True):
    """The questions of a pause."""

    prompt: str = DEFAULT_PROMPT
    """The question. `{/total}` stands for the value at this JSON pointer into the payload, `{{` and `}}` for the characters."""
    show: Texts | None = None
    """JSON pointers to the values of the payload that those who answer see; by default the whole payload, shortened."""
    fields: tuple[PauseField, ...] = ()
    """Without fields, the input of a resume is merged into the payload's root."""
    callback: bool = False
    """Whether a link in the task and in its notifications lets its holder answer the pause, once."""
    callback_key: str | None = None
    """A JSON pointer into the payload, where the link is put too; by default it is not in the payload."""
    notify: Texts = ()
    """Receivers of notifications: e-mail addresses, https:// URLs, ARNs of SQS queues."""


class WaitSection(Struct, frozen=True, kw_only=True):
    """How long a wait actor holds envelopes; exactly one of `for` and `until`."""

    for_: Annotated[Duration, Meta(ge=0)] | None = field(default=None, name="for")
    """A duration such as `3d`, from the arrival of the envelope."""
    until: str | None = None
    """A JSON pointer into the payload, to an RFC 3339 time or epoch seconds."""
    deadline: Literal["runs", "stands"] = "runs"
    """Whether the deadline of the task runs on during the wait, or stands still as in a pause."""


class ActorSettings(Struct, frozen=True, kw_only=True):
    """The keys of every kind of actor. `defaults` may set them for all actors."""

    timeout: Annotated[Duration, Meta(gt=0)] = 30.0
    """The time limit of one handler call; by default 15m for a heavy actor, or `max_run` if that is shorter."""
    memory: Annotated[Megabytes, Meta(ge=128, le=10_240)] = 512
    batch: BatchSection = BatchSection()
    concurrency: Annotated[int, Meta(ge=2, le=1000)] = 50
    """The maximum number of instances that process the queue at once."""
    provisioned: Annotated[int, Meta(ge=0)] = 0
    """Provisioned concurrency: instances that are always warm."""
    reserved: Annotated[int, Meta(ge=2, le=1000)] | None = None
    """Reserved concurrency: executions that no other function of the account may use."""
    pollers: PollersSection | None = None
    """Provisioned pollers of the queue, for bursts; excludes `concurrency`."""
    max_receives: Annotated[int, Meta(ge=1, le=1000)] = 5
    """Starts of the work on a message that do not come to an end, before it goes to the dead-letter queue."""
    env: Environment = {}
    """Environment variables of the handler or job."""
    access: tuple[AccessEntry, ...] = ()
    can_send_to: Texts | None = None
    """The actors it may route to, or `*` for all; by default derived from the routes of the tools."""
    resiliency: ResiliencySection = ResiliencySection()
    deduplicate: bool = False
    """Skip a hop that has been completed before."""
    keep_input: bool = False
    """Keep each hop's input for replay."""
    frames: Literal["streamed", "buffered"] = "streamed"
    handler_mode: Literal["payload", "envelope", "envelope-v1"] = "payload"
    fan_out_lists: bool = False
    """A returned list becomes one frame per item."""
    child_ids: Literal["uuid", "suffix"] = "uuid"
    failed_payload: Literal["plain", "wrapped"] = "plain"
    validate: bool = True
    """Validate received envelopes; only a user's own end actor may turn this off."""
    fair_by: Annotated[str, Meta(min_length=1)] | None = None
    """The header that names the tenant, for fair queues."""
    written: Written = {}


class ActorSection(ActorSettings, Completed, frozen=True, kw_only=True):
    """An actor: `handler` makes it light, `spark` makes it heavy, `kind` makes it a special actor."""

    handler: str | None = None
    """`module.function` or `module.Class.method` in the `code` folder."""
    spark: SparkSection | None = None
    kind: Literal["fan_in", "pause", "wait", "end"] | None = None
    fan_in: FanInSection | None = None
    pause: PauseSection | None = None
    wait: WaitSection | None = None
    secrets: Secrets = {}
    """Variable → the name of a secret of Secrets Manager, or `ssm:` and the name of a parameter of Systems Manager."""

    def completed(self, written: Mapping[str, Any]) -> Self:
        """Return the actor with the defaults of a heavy one, where neither the actor nor `defaults` has a value."""
        if self.spark is None:
            return self
        missing = {key: value for key, value in _HEAVY_BATCH.items() if key not in written.get("batch", {})}
        timeout = self.timeout if "timeout" in written else min(HEAVY_TIMEOUT, self.spark.max_run)
        return replace(self, batch=replace(self.batch, **missing), timeout=timeout)
