"""Permissions that several kinds of function share."""

from collections.abc import Iterable

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant

# An inline policy ends at 10,240 characters; beyond this many queues one pattern stands for all of them.
_QUEUES_LISTED = 50

READ = ("s3:GetObject",)
WRITE = ("s3:PutObject",)
READ_WRITE = ("s3:GetObject", "s3:PutObject")
_WHY_KEYS = "Keys under this prefix hold ids that nobody knows before they come."


def logs(addresses: Addresses, function: str) -> Grant:
    """Write to the function's own log group."""
    group = addresses.arn("logs", f"log-group:{addresses.log_group_name(function)}:*")
    why = "Log streams of the function's own log group; Lambda names them."
    return Grant(("logs:CreateLogStream", "logs:PutLogEvents"), (group,), why=why)


def consume(addresses: Addresses, actor: str) -> Grant:
    """What an event source mapping, and nacking with a short visibility, needs on a function's own queue."""
    actions = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
    return Grant(actions, (addresses.queue_arn(actor),))


def send(addresses: Addresses, targets: Iterable[str]) -> Grant:
    """Send to these queues."""
    queues = sorted({addresses.queue_arn(target) for target in targets})
    if len(queues) > _QUEUES_LISTED:
        why = "More queues than fit into a policy: all of this namespace."
        return Grant(("sqs:SendMessage",), (addresses.queue_arns_of_namespace(),), why=why)
    return Grant(("sqs:SendMessage",), tuple(queues))


def report(addresses: Addresses, api_id: str) -> Grant:
    """The routes of the gateway that are for the mesh's own functions: reports, all at once or on one task, and states."""
    routes = ("POST/api/v1/mesh/events", "POST/api/v1/mesh/*/events", "POST/api/v1/mesh/states")
    paths = [addresses.arn("execute-api", f"{api_id}/$default/{route}") for route in routes]
    return Grant(("execute-api:Invoke",), tuple(paths), why="Nobody knows the ids of tasks before they come.")


def objects(addresses: Addresses, actions: tuple[str, ...], *prefixes: str) -> Grant:
    """Objects of the mesh's own bucket under these prefixes."""
    patterns = [addresses.objects_arn(addresses.bucket, f"{prefix}/*") for prefix in prefixes]
    return Grant(actions, tuple(patterns), why=_WHY_KEYS)


def tell_missing(addresses: Addresses) -> Grant:
    """Whoever may not list a bucket is told "denied" of a missing object, and could not tell the two apart."""
    return Grant(("s3:ListBucket",), (addresses.bucket_arn(addresses.bucket),))


def table(addresses: Addresses, kind: str) -> Grant:
    """Items of one of the mesh's tables."""
    actions = ("BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query")
    allowed = tuple(f"dynamodb:{action}" for action in (*actions, "UpdateItem"))
    return Grant(allowed, (addresses.table_arn(kind),))


def breaker(addresses: Addresses) -> Grant:
    """The state of a circuit breaker."""
    return Grant(("dynamodb:GetItem", "dynamodb:PutItem"), (addresses.table_arn("breaker"),))


def puts_together(table: MeshTable) -> bool:
    """Whether the mesh has sets of slices."""
    return any(actor.kind == "fan_in" for actor in table.actors.values())


def read_set(addresses: Addresses) -> Grant:
    """Whether a set is closed."""
    return Grant(("dynamodb:GetItem",), (addresses.table_arn("fan-in"),))


def fan_in_actors(table: MeshTable) -> set[str]:
    """The actors that put sets of slices together."""
    return {name for name, actor in table.actors.items() if actor.kind == "fan_in"}


def ends(*more: str) -> set[str]:
    """The end actors, where everything may go, and others."""
    return {names.SINK, names.SUMP, *more}
