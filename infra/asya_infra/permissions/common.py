"""Permissions that several kinds of function share."""

from collections.abc import Iterable, Sequence

from asya.protocol import names
from asya.protocol.keys import BUFFERED_PREFIX, SUPERSEDED_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import (
    LETTER_PREFIX,
    OUTAGE_KEY,
    OWNER_PREFIX,
    ROLE_PREFIX,
    STATE_ATTRIBUTES,
    own_letters,
    own_starts,
)
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.packing import SEND

READ = ("s3:GetObject",)
WRITE = ("s3:PutObject",)
READ_WRITE = ("s3:GetObject", "s3:PutObject")
_KEYS_REASON = "Keys under this prefix contain ids, which exist only at run time."
_PAYLOAD_PREFIXES = ("payloads", "inbox")
# Older versions stored payloads without their actor. No key with an actor is that short, so this matches no such one.
_LEGACY_PAYLOAD = f"??/{'?' * 64}.json"
# Up to this number of targets, a role names their payloads one by one.
_MOST_TARGETS = 50


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


def sign_tokens(key_arn: str) -> Grant:
    """Allow deriving the key of stream tokens and of callbacks."""
    return Grant(("kms:GenerateMac",), (key_arn,))


def read_states(addresses: Addresses) -> Grant:
    """Allow the read of a pre-flight: the states of tasks, and no other attribute of their records."""
    return read_attributes(addresses, STATE_ATTRIBUTES)


def read_attributes(addresses: Addresses, attributes: Sequence[str]) -> Grant:
    """Allow the read of these attributes of the items of the tasks table, and of no others."""
    conditions = {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": list(attributes)},
        # An empty set equals every list: a call that names no attribute would get all.
        "Null": {"dynamodb:Attributes": "false"},
        "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
    }
    return Grant(("dynamodb:BatchGetItem",), (addresses.table_arn("tasks"),), conditions=conditions)


def objects(addresses: Addresses, actions: tuple[str, ...], *prefixes: str) -> Grant:
    """Allow actions on the objects of the mesh's own bucket under these prefixes."""
    patterns = [addresses.objects_arn(addresses.bucket, f"{prefix}/*") for prefix in prefixes]
    return Grant(actions, tuple(patterns), reason=_KEYS_REASON)


def list_keys(addresses: Addresses, *prefixes: str) -> Grant:
    """Allow listing the keys below these prefixes of the mesh's own bucket.

    S3 answers 404 for a missing object to those who may list its key, and 403 to all others.
    """
    return list_bucket_keys(addresses, addresses.bucket, *(f"{prefix}/" for prefix in prefixes))


def list_bucket_keys(addresses: Addresses, bucket: str, *prefixes: str) -> Grant:
    """Allow listing the keys of a bucket that begin with one of these prefixes."""
    condition = {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}}
    return Grant(("s3:ListBucket",), (addresses.bucket_arn(bucket),), conditions=condition)


def read_own_payloads(addresses: Addresses, actor: str) -> list[Grant]:
    """Allow reading the payloads of messages for one actor.

    Those of older versions have no actor in their keys. Nobody may list them, and each key contains a SHA-256 of the payload.
    """
    own = [f"{prefix}/{actor}" for prefix in _PAYLOAD_PREFIXES]
    patterns = [*(f"{prefix}/*" for prefix in own), *(f"{prefix}/{_LEGACY_PAYLOAD}" for prefix in _PAYLOAD_PREFIXES)]
    keys = tuple(addresses.objects_arn(addresses.bucket, pattern) for pattern in patterns)
    return [Grant(READ, keys, reason=_KEYS_REASON), list_keys(addresses, *own)]


def read_all_payloads(addresses: Addresses) -> list[Grant]:
    """Allow reading the payloads of all messages: for those who get references that other actors received."""
    return [objects(addresses, READ, *_PAYLOAD_PREFIXES), list_keys(addresses, *_PAYLOAD_PREFIXES)]


def write_payloads(addresses: Addresses, targets: Iterable[str] | None = None) -> Grant:
    """Allow storing the payloads of messages to these actors, or to all."""
    names_of_targets = sorted(set(targets)) if targets is not None else []
    if not 0 < len(names_of_targets) <= _MOST_TARGETS:
        return objects(addresses, WRITE, "payloads")
    return objects(addresses, WRITE, *(f"payloads/{target}" for target in names_of_targets))


def buffer_frames(addresses: Addresses, actor: str) -> list[Grant]:
    """Allow storing and reading the buffered frames of an actor's own hops.

    Hops that ran in an older version have theirs below `frames/`, which no role with user code may list.
    """
    own = f"{BUFFERED_PREFIX}{actor}"
    return [
        objects(addresses, READ_WRITE, own),
        list_keys(addresses, own),
        objects(addresses, READ, "frames"),
    ]


def deny_slices(addresses: Addresses) -> Grant:
    """Deny reading large slices: they lie beside the frames that older versions stored."""
    slices = addresses.objects_arn(addresses.bucket, "frames/fan-in/*")
    return Grant(READ, (slices,), reason=_KEYS_REASON, effect="Deny")


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
    keys = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{ROLE_PREFIX}*"]}}
    return Grant(("dynamodb:GetItem",), (addresses.table_arn("sink"),), conditions=keys)


def note_letters(addresses: Addresses, actor: str) -> Grant:
    """Allow noting who has sent the messages of the actor's own queue (`protocol §4.entry.moved.unseen`)."""
    keys = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{own_letters(actor)}*"]}}
    return Grant(("dynamodb:PutItem",), (addresses.table_arn("sink"),), conditions=keys)


def admit(addresses: Addresses, actor: str) -> list[Grant]:
    """Allow taking envelopes: judging their senders, and counting the starts of those that come again."""
    return [*judge_senders(addresses, *_own_marks(actor)), give_up(addresses, actor)]


def judge_senders(addresses: Addresses, *written: str) -> list[Grant]:
    """Allow judging the senders of envelopes (`protocol §4.entry`): it reads roles and first senders, and claims ids for owners.

    Args:
        addresses: the addresses of the mesh.
        written: patterns of further keys that may be written.
    """
    table = (addresses.table_arn("sink"),)
    # These calls have one key each. `ForAllValues` would also hold for a call without any.
    read = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [OUTAGE_KEY, f"{ROLE_PREFIX}*", f"{LETTER_PREFIX}*"]}}
    write = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [*written, f"{OWNER_PREFIX}*"]}}
    return [
        Grant(("dynamodb:GetItem",), table, conditions=read),
        Grant(("dynamodb:UpdateItem",), table, conditions=write),
    ]


def count_starts(addresses: Addresses, function: str) -> list[Grant]:
    """Allow a system function to count the starts of its messages (`protocol §4.starts`), and to note outages."""
    table = (addresses.table_arn("sink"),)
    write = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [*_own_marks(function)]}}
    return [
        read_outages(addresses),
        Grant(("dynamodb:UpdateItem",), table, conditions=write),
        give_up(addresses, function),
    ]


def read_outages(addresses: Addresses) -> Grant:
    """Allow reading the notes of outages, for the errors that name them."""
    keys = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [OUTAGE_KEY]}}
    return Grant(("dynamodb:GetItem",), (addresses.table_arn("sink"),), conditions=keys)


def give_up(addresses: Addresses, function: str) -> Grant:
    """Allow a function to put a message of its own queue into its dead-letter queue."""
    return Grant(("sqs:SendMessage",), (addresses.dlq_arn(function),))


def _own_marks(function: str) -> tuple[str, str]:
    """Return the keys of the marks of a function's own messages, and of the notes of outages."""
    return OUTAGE_KEY, f"{own_starts(function)}*"


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
