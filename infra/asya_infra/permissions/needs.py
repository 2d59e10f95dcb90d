"""Makes IAM statements of the needs that manifests declare (`asya.needs`).

A resource that needs name has ARNs, the conditions of a call, and the reason why a wildcard stays.
Secrets and the VPC of a function have statements of their own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from asya import registry
from asya.capabilities.pauses.aws.notices import link_bus, source_of
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
    Resource,
    Store,
)
from asya.protocol import names
from asya.protocol.keys import PAYLOADS_PREFIX, S3Prefix
from asya.protocol.mesh_table import MeshTable
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant, of_leading_keys
from asya_infra.permissions.groups import heavy_actors, members


def secret_grants(references: Iterable[str], addresses: Addresses) -> list[Grant]:
    """Return the permissions to read these secrets and parameters, and nothing else."""
    names = sorted(set(references))
    parameters = [name.removeprefix(PARAMETER_PREFIX) for name in names if name.startswith(PARAMETER_PREFIX)]
    secrets = [name for name in names if not name.startswith(PARAMETER_PREFIX)]
    grants = []
    if secrets:
        # Secrets Manager appends a hyphen and six random characters to the name. A `*` would match longer names too.
        arns = [addresses.arn("secretsmanager", f"secret:{name}-??????") for name in secrets]
        grants.append(Grant(("secretsmanager:GetSecretValue",), tuple(arns)))
    if parameters:
        arns = [addresses.arn("ssm", f"parameter/{name.lstrip('/')}") for name in parameters]
        grants.append(Grant(("ssm:GetParameter",), tuple(arns)))
    return grants


_CHANGES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
_READS = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_REASON = (
    "Lambda creates the network interfaces with the role of the function, names them itself, and shares them with other "
    "functions; the Describe actions take no resource. The code of the function is denied all of it."
)


def network_interfaces(addresses: Addresses, function: str) -> list[Grant]:
    """Allow Lambda to connect a function to its VPC, and deny the function's own code the same calls."""
    own_code = {"ArnEquals": {"lambda:SourceFunctionArn": addresses.function_arn(function)}}
    actions = (*_CHANGES, *_READS)
    return [
        Grant(actions, ("*",), reason=_REASON),
        Grant(actions, ("*",), reason=_REASON, conditions=own_code, effect="Deny"),
    ]


_API_HOST = re.compile(r"([a-z0-9]+)\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_MOST_IN_BOTH_FORMS = 120


@dataclass(frozen=True, kw_only=True)
class Place:
    """A mesh with the addresses of its resources.

    Attributes:
        application: the id of the Spark application; None where no need names it.
    """

    addresses: Addresses
    table: MeshTable
    application: str | None = None


def call_grants(need: Calls, place: Place) -> list[Grant]:
    """Return the permissions for calls on a named resource; none if the mesh has no such resource."""
    if need.on is Resource.WEBHOOK_KEYS:
        return secret_grants((webhook.secret for webhook in place.table.webhooks.values()), place.addresses)
    found = _FOUND[need.on](place)
    return [Grant(need.calls, found.arns, reason=found.reason, conditions=found.conditions)] if found.arns else []


def api_of(host: str) -> tuple[str, str] | None:
    """Return the id and the region of the API at a host; None if the host is not API Gateway's own."""
    match = _API_HOST.fullmatch(host)
    return (match[1], match[2]) if match else None


@dataclass(frozen=True)
class _Found:
    """What a mesh has of a resource."""

    arns: tuple[str, ...]
    reason: str = ""
    conditions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _event_bus(place: Place, bus: str = "default") -> _Found:
    # AWS always sets this key; the local cloud may not.
    own = {"StringEqualsIfExists": {"events:source": source_of(place.addresses.namespace)}}
    return _Found((place.addresses.arn("events", f"event-bus/{bus}"),), conditions=own)


def _link_bus(place: Place) -> _Found:
    return _event_bus(place, link_bus(place.addresses.namespace))


def _application(place: Place) -> _Found:
    assert place.application is not None, "the stack of this function has no application"
    return _Found((place.addresses.application_arn(place.application),))


def _job_runs(place: Place) -> _Found:
    [application] = _application(place).arns
    return _Found((f"{application}/jobruns/*",), "Job runs of this mesh's application; the service names them.")


def _job_roles(place: Place) -> _Found:
    roles = tuple(map(place.addresses.job_role_arn, heavy_actors(place.table)))
    return _Found(roles, conditions={"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}})


def _log_groups(place: Place) -> _Found:
    """Find the log groups of actors and system functions, never a pattern of names: those of a stage begin alike."""
    addresses, declared = place.addresses, (each.name for each in registry.functions_of(place.table))
    functions = (*place.table.actors, *declared, names.GATEWAY_LIVE)
    found = dict.fromkeys(addresses.log_group_name(each) for each in functions)
    groups = [addresses.arn("logs", f"log-group:{each}") for each in found]
    # AWS checks the form with the log streams, the local cloud the one without. A large mesh has no room for both.
    forms = ("", ":*") if len(groups) <= _MOST_IN_BOTH_FORMS else (":*",)
    arns = tuple(group + form for form in forms for group in groups)
    return _Found(arns, "Log streams of a function's log group; Lambda names them.")


def _functions(place: Place) -> _Found:
    pattern = f"function:{names.function_name(place.addresses.namespace, '*')}"
    reason = (
        "A role has no room for the names of 300 functions beside those of their queues, and the answer is a number."
    )
    return _Found((place.addresses.arn("lambda", pattern),), reason)


def _foreign_gateways(place: Place) -> _Found:
    """Find the call for reports of these gateways, and no other call; APIs of other accounts take no foreign roles."""
    addresses, hosts = place.addresses, place.table.gateway.foreign_gateways
    apis = sorted({api for host in hosts if (api := api_of(host)) is not None})
    return _Found(
        tuple(
            f"arn:{addresses.partition}:execute-api:{region}:{addresses.account}:{api}/$default/POST/api/v1/mesh/events"
            for api, region in apis
        )
    )


_FOUND: Mapping[Resource, Callable[[Place], _Found]] = MappingProxyType(
    {
        Resource.EVENT_BUS: _event_bus,
        Resource.LINK_BUS: _link_bus,
        Resource.APPLICATION: _application,
        Resource.JOB_RUNS: _job_runs,
        Resource.JOB_ROLES: _job_roles,
        Resource.LOG_GROUPS: _log_groups,
        Resource.FUNCTIONS: _functions,
        Resource.EVENT_SOURCES: lambda _: _Found(("*",), "The list of mappings is no resource of IAM."),
        Resource.METRICS: lambda _: _Found(("*",), "Metrics are no resources of IAM."),
        Resource.FOREIGN_GATEWAYS: _foreign_gateways,
    }
)


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
    """Allow a function to write to its log group. Functions of the crew share one, which no user code may write to."""
    group = addresses.arn("logs", f"log-group:{addresses.log_group_name(function)}:*")
    reason = "Log streams of the function's log group; Lambda names them."
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
        conditions |= of_leading_keys(key.replace(OWN, name) for key in need.keys)
    elif need.except_keys:
        conditions |= of_leading_keys(need.except_keys, operator="StringNotLike")
    if need.attributes:
        conditions |= {
            "ForAllValues:StringEquals": {"dynamodb:Attributes": list(need.attributes)},
            # An empty set equals every list: a call that names no attribute would get all.
            "Null": {**conditions.get("Null", {}), "dynamodb:Attributes": "false"},
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
