"""What functions need of AWS, as data. A manifest declares who needs it; a need says what, on what, and in which meshes.

The vocabulary is closed. It has named calls, queues, tables with keys, prefixes of the bucket, and resources with names. It has no
expressions: what it cannot say stays a construct. `asya_infra.permissions.needs` makes IAM statements of needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Literal

from asya.predicates import Predicate, always

OWN = "{own}"
"""In names and keys: the name of the function itself."""
EACH = "{each}"
"""In keys: the name of each actor of a group; the need has one key for each."""
SUCCEEDED, FAILED = "{succeeded}", "{failed}"
"""In keys of results: the prefixes of the mesh file."""
OWN_DEAD_LETTERS = f"{OWN}-dlq"
"""The dead-letter queue of the function itself."""

ItemCall = Literal[
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "UpdateItem",
]
ObjectCall = Literal["DeleteObject", "GetObject", "PutObject"]
MessageCall = Literal["ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "SendMessage"]
Store = Literal["bucket", "results"]
"""The bucket of the mesh, or the prefix of the results, which may be in another bucket."""


class Group(Enum):
    """Actors that only the actor table knows."""

    TARGETS = "its targets"
    EVERY_ACTOR = "every actor"
    ACTORS = "the queue of every actor"
    FAN_IN = "the fan-in actors"
    HOOKS = "the hooks of x-sink"
    RETRYING = "the actors whose retries wait in x-wait"
    STARTED = "the first actors of the routes of triggers"
    TARGETS_OF_JOBS = "the targets of heavy actors"
    LINGERING = "the heavy actors whose runs linger"
    WATCHED = "every queue whose dead letters are envelopes"
    DEAD_LETTERS = "the dead-letter queues of envelopes"


class Resource(Enum):
    """What calls without a queue, a table or an object are about."""

    WEBHOOK_KEYS = "the keys of webhooks"
    EVENT_BUS = "the default bus, as the mesh"
    LINK_BUS = "the mesh's own bus for links, as the mesh"
    APPLICATION = "the Spark application"
    JOB_RUNS = "the job runs of the Spark application"
    JOB_ROLES = "the roles of job runs, passed to EMR Serverless"
    LOG_GROUPS = "the log groups of the mesh's functions"
    FUNCTIONS = "the functions whose names begin with that of the mesh"
    EVENT_SOURCES = "all event source mappings"
    METRICS = "all metrics"
    FOREIGN_GATEWAYS = "the call for reports of the gateways in `gateway.foreign_gateways`"


@dataclass(frozen=True, kw_only=True)
class Messages:
    """Calls on queues.

    Attributes:
        queues: names of queues, and groups of actors.
    """

    calls: tuple[MessageCall, ...]
    queues: tuple[str | Group, ...]
    when: Predicate = always


@dataclass(frozen=True, kw_only=True)
class Items:
    """Calls on items of a table of the mesh.

    Attributes:
        table: its name in the manifest of its capability.
        keys: patterns of the partition keys; empty for all items.
        except_keys: patterns of partition keys whose items stay out, where `keys` is empty.
        attributes: the only attributes that may be read; empty for all.
        indexes: the indexes; empty for the table itself.
    """

    table: str
    calls: tuple[ItemCall, ...]
    keys: tuple[str, ...] = ()
    except_keys: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    when: Predicate = always


@dataclass(frozen=True, kw_only=True)
class Objects:
    """Calls on objects.

    Attributes:
        keys: patterns of keys.
        each: the actors that `EACH` stands for.
    """

    calls: tuple[ObjectCall, ...]
    keys: tuple[str, ...]
    store: Store = "bucket"
    each: Group | None = None
    when: Predicate = always


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The list of keys. S3 answers 404 for a missing object to those who may list its key, and 403 to all others.

    Attributes:
        keys: patterns of keys.
    """

    keys: tuple[str, ...]
    store: Store = "bucket"
    when: Predicate = always


@dataclass(frozen=True, kw_only=True)
class Payloads:
    """Storing the payloads of messages to actors.

    Attributes:
        to: the actors; empty for all.
    """

    to: tuple[str | Group, ...] = ()
    when: Predicate = always


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Calls on other resources, as `service:Call`."""

    calls: tuple[str, ...]
    on: Resource
    when: Predicate = always


Need = Messages | Items | Objects | Keys | Payloads | Calls


def sends(*queues: str | Group, when: Predicate = always) -> Messages:
    """Declare that a function sends to these queues."""
    return Messages(calls=("SendMessage",), queues=queues, when=when)


def looks_at(*queues: str | Group) -> Messages:
    """Declare that a function receives messages and leaves them where they are."""
    return Messages(calls=("ChangeMessageVisibility", "GetQueueAttributes", "ReceiveMessage"), queues=queues)


def reads(*keys: str, store: Store = "bucket", when: Predicate = always) -> Objects:
    """Declare that a function reads objects."""
    return Objects(calls=("GetObject",), keys=keys, store=store, when=when)


def writes(*keys: str, store: Store = "bucket", each: Group | None = None, when: Predicate = always) -> Objects:
    """Declare that a function writes objects."""
    return Objects(calls=("PutObject",), keys=keys, store=store, each=each, when=when)


def reads_and_writes(*keys: str, when: Predicate = always) -> Objects:
    """Declare that a function reads and writes objects."""
    return Objects(calls=("GetObject", "PutObject"), keys=keys, when=when)


def lists(*keys: str, store: Store = "bucket", when: Predicate = always) -> Keys:
    """Declare that a function lists keys."""
    return Keys(keys=keys, store=store, when=when)


def uses(table: str) -> Items:
    """Declare that a function reads and writes all items of a table."""
    calls: tuple[ItemCall, ...] = (
        *("BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query"),
        "UpdateItem",
    )
    return Items(table=table, calls=calls)


def split(need: Need) -> Iterator[Need]:
    """Yield the parts of a need: each has one call on one queue, key, index or resource."""
    match need:
        case Messages():
            for call, queue in product(need.calls, need.queues):
                yield replace(need, calls=(call,), queues=(queue,))
        case Items():
            for items, key, index in product(need.calls, need.keys or ("",), need.indexes or ("",)):
                yield replace(need, calls=(items,), keys=(key,) if key else (), indexes=(index,) if index else ())
        case Objects():
            for objects, key in product(need.calls, need.keys):
                yield replace(need, calls=(objects,), keys=(key,))
        case Keys():
            yield from (replace(need, keys=(key,)) for key in need.keys)
        case Payloads():
            yield from (replace(need, to=(each,)) for each in need.to) if need.to else (need,)
        case Calls():
            yield from (replace(need, calls=(each,)) for each in need.calls)
