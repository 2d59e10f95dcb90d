"""Permissions that several kinds of function share."""

from collections.abc import Iterable

from asya.protocol import names
from asya.protocol.keys import SUPERSEDED_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.senders.aws.letter_senders import LETTER_PREFIX
from asya.senders.aws.owner_claims import OWNER_PREFIX
from asya.senders.aws.role_list import ROLE_PREFIX
from asya.tasks.aws.state_reader import STATE_ATTRIBUTES
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.packing import SEND

READ = ("s3:GetObject",)
WRITE = ("s3:PutObject",)
READ_WRITE = ("s3:GetObject", "s3:PutObject")
_KEYS_REASON = "Keys under this prefix contain ids, which exist only at run time."


def write_logs(addresses: Addresses, function: str) -> Grant:
    """Allow a function to write to its own log group."""
    group = addresses.arn("logs", f"log-group:{addresses.log_group_name(function)}:*")
    reason = "Log streams of the function's own log group; Lambda names them."
    return Grant(("logs:CreateLogStream", "logs:PutLogEvents"), (group,), reason=reason)


def consume_queue(addresses: Addresses, actor: str) -> Grant:
    """Allow a function to consume its own queue: for the event source mapping and for nacks."""
    actions = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
    return Grant(actions, (addresses.queue_arn(actor),))


def send_messages(addresses: Addresses, targets: Iterable[str]) -> Grant:
    """Allow sending to the queues of these actors, never to a pattern of names."""
    return Grant(SEND, tuple(sorted({addresses.queue_arn(target) for target in targets})))


def send_reports(addresses: Addresses) -> Grant:
    """Allow reports of hops."""
    return send_messages(addresses, {names.REPORTS})


def send_ends(addresses: Addresses) -> Grant:
    """Allow reports of ends, which change the outcome of any task: for the crew only, never for a role with user code."""
    return send_messages(addresses, {names.ENDS})


def read_states(addresses: Addresses) -> Grant:
    """Allow the read of a pre-flight: the states of tasks, and no other attribute of their records."""
    conditions = {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": list(STATE_ATTRIBUTES)},
        # An empty set equals every list: a call that names no attribute would get all.
        "Null": {"dynamodb:Attributes": "false"},
        "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
    }
    return Grant(("dynamodb:BatchGetItem",), (addresses.table_arn("tasks"),), conditions=conditions)


def objects(addresses: Addresses, actions: tuple[str, ...], *prefixes: str) -> Grant:
    """Allow actions on the objects of the mesh's own bucket under these prefixes."""
    patterns = [addresses.objects_arn(addresses.bucket, f"{prefix}/*") for prefix in prefixes]
    return Grant(actions, tuple(patterns), reason=_KEYS_REASON)


def list_bucket(addresses: Addresses) -> Grant:
    """Allow listing the mesh's own bucket. Without it S3 answers 403 for a missing object instead of 404."""
    return Grant(("s3:ListBucket",), (addresses.bucket_arn(addresses.bucket),))


def table(addresses: Addresses, kind: str) -> Grant:
    """Allow reading and writing the items of one of the mesh's tables."""
    actions = ("BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query")
    allowed = tuple(f"dynamodb:{action}" for action in (*actions, "UpdateItem"))
    return Grant(allowed, (addresses.table_arn(kind),))


def claims(addresses: Addresses) -> Grant:
    """Allow claiming the ends of envelopes, and noting their pauses. Nobody may replace or delete a claim."""
    return Grant(("dynamodb:UpdateItem",), (addresses.table_arn("sink"),))


def read_claims(addresses: Addresses) -> Grant:
    """Allow reading the claim on an end again, after its object is written (`protocol §11`)."""
    return Grant(("dynamodb:GetItem",), (addresses.table_arn("sink"),))


def read_roles(addresses: Addresses) -> Grant:
    """Allow reading which roles are those of the mesh."""
    keys = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{ROLE_PREFIX}*"]}}
    return Grant(("dynamodb:GetItem",), (addresses.table_arn("sink"),), conditions=keys)


def admit(addresses: Addresses) -> list[Grant]:
    """Allow judging the senders of envelopes (`protocol §4.entry`): it reads roles and first senders, and claims ids for owners."""
    table = (addresses.table_arn("sink"),)
    read = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{ROLE_PREFIX}*", f"{LETTER_PREFIX}*"]}}
    claim = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{OWNER_PREFIX}*"]}}
    return [
        Grant(("dynamodb:GetItem",), table, conditions=read),
        Grant(("dynamodb:UpdateItem",), table, conditions=claim),
    ]


def keep_superseded(addresses: Addresses) -> Grant:
    """Allow keeping ends that do not count."""
    results = addresses.results
    kept = addresses.objects_arn(results.bucket, f"{results.prefix}{SUPERSEDED_PREFIX}*")
    return Grant(WRITE, (kept,), reason=_KEYS_REASON)


def completed_hops(addresses: Addresses) -> Grant:
    """Allow reading and writing the hops that an actor has completed, for `deduplicate`."""
    return Grant(("dynamodb:GetItem", "dynamodb:PutItem"), (addresses.table_arn("hops"),))


def circuit_breaker(addresses: Addresses) -> Grant:
    """Allow reading and writing the state of a circuit breaker."""
    return Grant(("dynamodb:GetItem", "dynamodb:PutItem"), (addresses.table_arn("breaker"),))


def read_sets(addresses: Addresses) -> Grant:
    """Allow reading the state of a set."""
    return Grant(("dynamodb:GetItem",), (addresses.table_arn("fan-in"),))


def record_set_replays(addresses: Addresses) -> Grant:
    """Allow recording which fan-out a new set repeats."""
    return Grant(("dynamodb:PutItem",), (addresses.table_arn("fan-in"),))


def fan_in_actors(table: MeshTable) -> set[str]:
    """Return the names of the fan-in actors."""
    return {name for name, actor in table.actors.items() if actor.kind == "fan_in"}


def with_end_actors(*actors: str) -> set[str]:
    """Return these actors and the end actors, which every sidecar may send to."""
    return {names.SINK, names.SUMP, *actors}
