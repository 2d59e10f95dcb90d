"""The names of actors and AWS resources (`protocol §1`, `§4`).

A stage is part of the namespace, such as `shop-staging`.
"""

import hashlib
import re
from functools import lru_cache
from typing import Final

LABEL_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LABEL_LIMIT = 63
QUEUE_NAME_LIMIT = 80
ROLE_NAME_LIMIT = 64
BUCKET_NAME_LIMIT = 63
ACCOUNT_LENGTH = 12
REGION_LIMIT = 15  # us-isof-south-1

METRICS_NAMESPACE = "Asya"
"""The namespace in CloudWatch of the metrics of all meshes."""

SINK: Final = "x-sink"
SUMP = "x-sump"
PAUSE = "x-pause"
RESUME: Final = "x-resume"
WAIT = "x-wait"
CHECKPOINT = "x-checkpoint"
FAN_IN = "x-fan-in"

# The queues of reports (`protocol §5`, reports). One function, `x-reports`, consumes both.
REPORTS = "x-reports"
ENDS = "x-ends"

# The function that runs the steps of the clock (`STEPS`) one after another.
CLOCK = "x-clock"
FAN_IN_SWEEP = "x-fan-in-sweep"
PAUSE_SWEEP = "x-pause-sweep"
TASK_SWEEP = "x-task-sweep"
DLQ = "x-dlq"

# System functions that are not actors. The reserved prefix keeps them apart from user names.
DISPATCH = "x-dispatch"
COMPLETION = "x-completion"
RECONCILE = "x-reconcile"
INDEX = "x-index"
PUSH_FEED = "x-push-feed"
PUSH = "x-push"
ROLES = "x-roles"
GATEWAY_API = "x-gateway-api"
GATEWAY_STREAM = "x-gateway-stream"
GATEWAY_LIVE = "x-gateway-live"
LOGS = "x-logs"
OPERATIONS = "x-operations"

# The queue of what EventBridge and SNS could not deliver. No function consumes it.
UNDELIVERED = "x-undelivered"

# The queue of what triggers react to, and its function (`protocol §16`).
TRIGGERS = "x-triggers"
# The function that takes webhooks. The hooks of x-sink are something else.
WEBHOOKS = "x-hooks"

SYSTEM_FUNCTIONS = (
    CLOCK, DISPATCH, COMPLETION, RECONCILE, INDEX, PUSH_FEED, PUSH, REPORTS, ROLES, GATEWAY_API, GATEWAY_STREAM,
    GATEWAY_LIVE, LOGS, OPERATIONS, TRIGGERS, WEBHOOKS,
)  # fmt: skip
"""The functions of a mesh that belong to no actor of the mesh table."""
CREW = frozenset({*SYSTEM_FUNCTIONS, SINK, SUMP, PAUSE, RESUME, WAIT, CHECKPOINT, FAN_IN})
"""The functions of the product. They run no user code, and share a log group."""
CREW_LOGS = "x-crew"
"""Stands for a function in the name of their log group."""
STEPS = (TASK_SWEEP, PAUSE_SWEEP, FAN_IN_SWEEP, DLQ)
"""What `x-clock` runs. Each has lines and metrics of its own; the function and its role are those of the clock."""
REPORT_QUEUES = (REPORTS, ENDS)
END_ACTORS = frozenset({SINK, SUMP})
_RUNNERS = dict.fromkeys(STEPS, CLOCK) | {SUMP: SINK}
ROUTABLE_CREW = frozenset({PAUSE, RESUME, CHECKPOINT, FAN_IN})
_RESERVED = frozenset({"happy-end", "error-end"})


def check_label(name: str, what: str) -> str:
    """Return `name` if it is a DNS label of at most 63 characters.

    Args:
        what: the kind of the name for the error, such as `actor`.

    Raises:
        ValueError: the name is not a DNS label.
    """
    if not name:
        raise ValueError(f"{what} name is empty")
    if len(name) > LABEL_LIMIT:
        raise ValueError(f"{what} name {name!r} has {len(name)} characters; {LABEL_LIMIT} at most")
    if not LABEL_PATTERN.fullmatch(name):
        raise ValueError(f"{what} name {name!r} is not a DNS label: lower-case letters, digits and inner hyphens only")
    return name


BRANCHES_LIMIT = 100
BRANCH_LIMIT = 64


def check_branches(branches: tuple[str, ...]) -> tuple[str, ...]:
    """Return `branches` if they are the names of the branches of one set (`protocol §9.branches`).

    Raises:
        TypeError: a name is no text.
        ValueError: they are too many, two are equal, or a name is empty, too long or has a control character.
    """
    if len(branches) > BRANCHES_LIMIT:
        raise ValueError(f"{len(branches)} branches; {BRANCHES_LIMIT} at most, and sets nest: branch in two steps")
    for name in branches:
        if not isinstance(name, str):
            raise TypeError(f"the name of a branch is a text, not a {type(name).__name__}")
        if not 0 < len(name) <= BRANCH_LIMIT or not name.isprintable():
            raise ValueError(f"{name!r} is no name of a branch: 1 to {BRANCH_LIMIT} printable characters")
    if len(set(branches)) < len(branches):
        raise ValueError("two branches have the same name")
    return branches


def is_reserved(actor: str) -> bool:
    """Whether a user may not give an actor this name (`protocol §1`)."""
    return actor.startswith("x-") or actor in _RESERVED


@lru_cache  # every send checks one of the same few names
def is_routable(actor: str) -> bool:
    """Whether a route may contain this actor: any user's actor, and four of the crew (`protocol §1`)."""
    return not is_reserved(actor) or actor in ROUTABLE_CREW


def queue_name(namespace: str, actor: str) -> str:
    """The name of an actor's queue: `asya-{namespace}-{actor}` (`protocol §4`)."""
    return f"asya-{namespace}-{actor}"


def dlq_name(namespace: str, actor: str) -> str:
    """The name of the dead-letter queue behind an actor's queue."""
    return f"{queue_name(namespace, actor)}-dlq"


def function_name(namespace: str, actor: str) -> str:
    """The name of a Lambda function; a hash shortens it to 64 characters."""
    return _shortened(f"asya-{namespace}-{actor}", ROLE_NAME_LIMIT)


def runner_of(name: str) -> str:
    """The function that runs a step of the clock, or an end actor of the crew; any other function runs itself."""
    return _RUNNERS.get(name, name)


def log_group(namespace: str, function: str) -> str:
    """The name of the log group of a function or a step: its own, or that of the crew."""
    return f"/aws/lambda/{function_name(namespace, CREW_LOGS if runner_of(function) in CREW else function)}"


def log_stream_part(namespace: str, function: str) -> str:
    """What Lambda puts between the day and the environment into the names of streams of a shared log group."""
    return f"/{function_name(namespace, function)}["


def role_name(namespace: str, actor: str, region: str) -> str:
    """The name of a function's execution role. Roles are global in an account, so the name ends with the region.

    Only the part before the region is shortened: at synthesis the region may be a placeholder of unknown length.
    """
    return f"{_shortened(f'asya-{namespace}-{actor}', ROLE_NAME_LIMIT - REGION_LIMIT - 1)}-{region}"


def job_role(actor: str) -> str:
    """The name, for `role_name`, of the role of a heavy actor's job runs. No actor of a user begins with `x-`."""
    return f"x-job-{actor}"


PENDING_TABLE = "pending"
"""The kind of the table of pending envelopes and job runs."""


def table_name(namespace: str, kind: str) -> str:
    """The name of a DynamoDB table; the kinds are tasks, sink, pending, fan-in, breaker and hops (`protocol §4`)."""
    return f"asya-{namespace}-{kind}"


def stack_name(namespace: str, part: str) -> str:
    """The name of a stack; the parts are state, spark, queues-{k}, functions-{k}, gateway, alarms, dashboards."""
    return f"Asya-{namespace}-{part}"


def bucket_name(namespace: str, account: str, region: str) -> str:
    """The name of the mesh's bucket, unless the mesh file names buckets. Account and region may be placeholders."""
    limit = BUCKET_NAME_LIMIT - ACCOUNT_LENGTH - REGION_LIMIT - 2
    return f"{_shortened(f'asya-{namespace}', limit)}-{account}-{region}"


def access_policy_name(namespace: str, actor: str) -> str:
    """The name of the managed policy with a heavy actor's `access`; it narrows the session of the job runs."""
    return f"asya-{namespace}-{actor}-access"


def resource_name(namespace: str, kind: str) -> str:
    """The name of any other resource with a limit of 64 characters, such as an event rule."""
    return _shortened(f"asya-{namespace}-{kind}", ROLE_NAME_LIMIT)


def _shortened(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: limit - 9]}-{digest}"
