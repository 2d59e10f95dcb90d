"""Every name of the mesh, computed in one place (`protocol §1`, `§4`).

A stage is part of the namespace (`shop-staging`); nothing here knows about stages.
"""

import hashlib
import re
from functools import lru_cache

LABEL_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LABEL_LIMIT = 63
QUEUE_NAME_LIMIT = 80
ROLE_NAME_LIMIT = 64
BUCKET_NAME_LIMIT = 63
ACCOUNT_LENGTH = 12
REGION_LIMIT = 15  # us-isof-south-1

SINK = "x-sink"
SUMP = "x-sump"
PAUSE = "x-pause"
RESUME = "x-resume"
CHECKPOINT = "x-checkpoint"
FAN_IN = "x-fan-in"

# System functions that are no actors; the reserved prefix keeps them apart from every user's name.
DISPATCH = "x-dispatch"
COMPLETION = "x-completion"
RECONCILE = "x-reconcile"
INDEX = "x-index"
FAN_IN_SWEEP = "x-fan-in-sweep"
PAUSE_SWEEP = "x-pause-sweep"
TASK_SWEEP = "x-task-sweep"
DLQ = "x-dlq"
PUSH_FEED = "x-push-feed"
PUSH = "x-push"
GATEWAY_INGEST = "x-gateway-ingest"
GATEWAY_API = "x-gateway-api"
GATEWAY_STREAM = "x-gateway-stream"
GATEWAY_LIVE = "x-gateway-live"

END_ACTORS = frozenset({SINK, SUMP})
ROUTABLE_CREW = frozenset({PAUSE, RESUME, CHECKPOINT, FAN_IN})
_RESERVED = frozenset({"happy-end", "error-end"})


def check_label(name: str, what: str) -> str:
    """Return `name` if it is a DNS label of at most 63 characters.

    Raises:
        ValueError: saying what is wrong with the name of this `what` ("actor", "namespace").
    """
    if not name:
        raise ValueError(f"{what} name is empty")
    if len(name) > LABEL_LIMIT:
        raise ValueError(f"{what} name {name!r} has {len(name)} characters; {LABEL_LIMIT} at most")
    if not LABEL_PATTERN.fullmatch(name):
        raise ValueError(f"{what} name {name!r} is no DNS label: lower-case letters, digits and inner hyphens only")
    return name


def is_reserved(actor: str) -> bool:
    """Whether a user may not give an actor this name (`protocol §1`)."""
    return actor.startswith("x-") or actor in _RESERVED


@lru_cache  # asked at every sending, of the same few names
def is_routable(actor: str) -> bool:
    """Whether a route may name this actor: every user's actor, and of the crew only four (`protocol §1`)."""
    return not is_reserved(actor) or actor in ROUTABLE_CREW


def queue_name(namespace: str, actor: str) -> str:
    """`asya-{namespace}-{actor}` (`protocol §4`)."""
    return f"asya-{namespace}-{actor}"


def dlq_name(namespace: str, actor: str) -> str:
    """The name of the dead-letter queue behind an actor's queue."""
    return f"{queue_name(namespace, actor)}-dlq"


def function_name(namespace: str, actor: str) -> str:
    """The Lambda function of an actor or of a system function; 64 characters at most, shortened by a stable hash."""
    return _shortened(f"asya-{namespace}-{actor}", ROLE_NAME_LIMIT)


def role_name(namespace: str, actor: str, region: str) -> str:
    """The execution role of a function. Roles are global to an account, so the region is part of the name.

    Only what stands before the region is shortened: at synth the region may be a placeholder of unknown length.
    """
    return f"{_shortened(f'asya-{namespace}-{actor}', ROLE_NAME_LIMIT - REGION_LIMIT - 1)}-{region}"


def table_name(namespace: str, kind: str) -> str:
    """`asya-{namespace}-{kind}`; kinds: tasks, fan-in, pending, sink, breaker."""
    return f"asya-{namespace}-{kind}"


def stack_name(namespace: str, part: str) -> str:
    """`Asya-{namespace}-{part}`; parts: state, queues-{k}, functions-{k}, gateway."""
    return f"Asya-{namespace}-{part}"


def bucket_name(namespace: str, account: str, region: str) -> str:
    """The mesh's one bucket, unless the mesh file names others. Account and region may be placeholders, as above."""
    room = BUCKET_NAME_LIMIT - ACCOUNT_LENGTH - REGION_LIMIT - 2
    return f"{_shortened(f'asya-{namespace}', room)}-{account}-{region}"


def access_policy_name(namespace: str, actor: str) -> str:
    """The managed policy that holds a heavy actor's `access`; it narrows the session of its job runs."""
    return f"asya-{namespace}-{actor}-access"


def resource_name(namespace: str, kind: str) -> str:
    """Whatever else needs a name within 64 characters (event rules, the Spark application), told apart by its kind."""
    return _shortened(f"asya-{namespace}-{kind}", ROLE_NAME_LIMIT)


def _shortened(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: limit - 9]}-{digest}"
