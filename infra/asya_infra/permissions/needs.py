"""Makes IAM statements of the needs that manifests declare (`asya.needs`)."""

from collections.abc import Iterable, Iterator

from asya import registry
from asya.manifest import ActorFunction, Function, Queues, TableChanges
from asya.needs import (
    EACH,
    FAILED,
    OWN,
    SUCCEEDED,
    Calls,
    Group,
    Items,
    Keys,
    Messages,
    Need,
    Objects,
    Payloads,
    Store,
)
from asya.protocol.keys import PAYLOADS_PREFIX
from asya.protocol.s3_prefix import S3Prefix
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.groups import members
from asya_infra.permissions.resources import Place, call_grants

_KEYS_REASON = "Keys under this prefix contain ids, which exist only at run time."
# Up to this number of targets, a role names their payloads one by one.
_MOST_TARGETS = 50


def function_grants(name: str, place: Place) -> list[Grant]:
    """Return the permissions of a function of the mesh's own, or of an actor, as its manifest declares them.

    Args:
        name: the name of the actor or the function.
    """
    return declared_grants(registry.function_of(name, place.table), name, place)


def declared_grants(declaration: Function | ActorFunction, name: str, place: Place) -> list[Grant]:
    """Return the permissions that a declaration gives to a function: its logs, what calls it, and its needs."""
    needs = [need for need in declaration.needs if need.when(place.table, name)]
    return [
        write_logs(place.addresses, name),
        *_caller_grants(declaration, name, place.addresses),
        *(grant for need in needs for grant in grants(need, name, place)),
    ]


def grants(need: Need, name: str, place: Place) -> list[Grant]:
    """Return the permissions for a need of a function; none if the mesh has nothing that the need names."""
    match need:
        case Messages():
            return _on_queues(need, name, place)
        case Items():
            return [_on_items(need, name, place.addresses)]
        case Objects():
            return _on_objects(need, name, place)
        case Keys():
            return [_on_keys(need, name, place.addresses)]
        case Payloads():
            return [_on_payloads(need, name, place)]
        case Calls():
            return call_grants(need, place)


def write_logs(addresses: Addresses, function: str) -> Grant:
    """Allow a function to write to its own log group."""
    group = addresses.arn("logs", f"log-group:{addresses.log_group_name(function)}:*")
    reason = "Log streams of the function's own log group; Lambda names them."
    return Grant(("logs:CreateLogStream", "logs:PutLogEvents"), (group,), reason=reason)


def _caller_grants(declaration: Function | ActorFunction, name: str, addresses: Addresses) -> Iterator[Grant]:
    """Yield what the event source mappings of a function take with its role, and what nacks take."""
    caller = declaration.called_by if isinstance(declaration, Function) else Queues()
    if isinstance(caller, Queues):
        calls = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
        for queue in caller.names or (name,):
            yield Grant(calls, (addresses.queue_arn(queue),))
    if isinstance(caller, TableChanges):
        calls = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
        stream = f"{addresses.table_arn('tasks')}/stream/*"
        reason = "The name of a table's stream contains its start time."
        yield Grant(tuple(f"dynamodb:{call}" for call in calls), (stream,), reason=reason)


def _on_queues(need: Messages, name: str, place: Place) -> list[Grant]:
    queues = _named(need.queues, name, place)
    arns = tuple(sorted(place.addresses.queue_arn(queue) for queue in queues))
    return [Grant(tuple(f"sqs:{call}" for call in need.calls), arns)] if arns else []


def _on_items(need: Items, name: str, addresses: Addresses) -> Grant:
    table = addresses.table_arn(need.table)
    resources = tuple(f"{table}/index/{index}" for index in need.indexes) or (table,)
    conditions: dict[str, dict[str, object]] = {}
    if need.keys:
        # A call with one key has a key. `ForAllValues` would also hold for a call without any.
        operator = "ForAllValues" if any(call.startswith("Batch") for call in need.calls) else "ForAnyValue"
        own = [key.replace(OWN, name) for key in need.keys]
        conditions = {f"{operator}:StringLike": {"dynamodb:LeadingKeys": own}}
    if need.attributes:
        conditions |= {
            "ForAllValues:StringEquals": {"dynamodb:Attributes": list(need.attributes)},
            # An empty set equals every list: a call that names no attribute would get all.
            "Null": {"dynamodb:Attributes": "false"},
            "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
        }
    return Grant(tuple(f"dynamodb:{call}" for call in need.calls), resources, conditions=conditions)


def _on_objects(need: Objects, name: str, place: Place) -> list[Grant]:
    own = [key.replace(OWN, name) for key in need.keys]
    if need.each is not None:
        own = [key.replace(EACH, each) for each in sorted(members(need.each, place.table, name)) for key in own]
    ends = {SUCCEEDED: place.table.sink.succeeded_prefix, FAILED: place.table.sink.failed_prefix}
    for placeholder, prefix in ends.items():
        own = [key.replace(placeholder, prefix) for key in own]
    store = _store(need.store, place.addresses)
    arns = tuple(place.addresses.objects_arn(store.bucket, store.prefix + key) for key in dict.fromkeys(own))
    calls = tuple(f"s3:{call}" for call in need.calls)
    return [Grant(calls, arns, reason=_KEYS_REASON)] if arns else []


def _on_keys(need: Keys, name: str, addresses: Addresses) -> Grant:
    store = _store(need.store, addresses)
    condition = {"StringLike": {"s3:prefix": [store.prefix + key.replace(OWN, name) for key in need.keys]}}
    return Grant(("s3:ListBucket",), (addresses.bucket_arn(store.bucket),), conditions=condition)


def _on_payloads(need: Payloads, name: str, place: Place) -> Grant:
    targets = sorted(_named(need.to, name, place))
    keys = [""] if not 0 < len(targets) <= _MOST_TARGETS else [f"{target}/" for target in targets]
    arns = tuple(place.addresses.objects_arn(place.addresses.bucket, f"{PAYLOADS_PREFIX}{key}*") for key in keys)
    return Grant(("s3:PutObject",), arns, reason=_KEYS_REASON)


def _named(queues: Iterable[str | Group], name: str, place: Place) -> set[str]:
    """Return the names of queues, with the members of groups."""
    found: set[str] = set()
    for queue in queues:
        found |= members(queue, place.table, name) if isinstance(queue, Group) else {queue.replace(OWN, name)}
    return found


def _store(store: Store, addresses: Addresses) -> S3Prefix:
    return addresses.results if store == "results" else S3Prefix(addresses.bucket, "")
