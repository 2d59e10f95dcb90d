"""Permissions of the functions that send push notifications to agents (`protocol §13`, `/a2a`)."""

from asya.protocol import names
from asya.protocol.table_keys import SHARE_PREFIX
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant


def feed(addresses: Addresses) -> list[Grant]:
    """x-push-feed: reads the stream of the tasks table and the subscriptions, and queues notifications."""
    table = addresses.table_arn("tasks")
    stream_actions = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    actions = tuple(f"dynamodb:{action}" for action in stream_actions)
    return [
        common.write_logs(addresses, names.PUSH_FEED),
        Grant(actions, (f"{table}/stream/*",), reason="The name of a table's stream contains its start time."),
        Grant(("dynamodb:Query",), (table,)),
        # The event source mapping sends changes that fail repeatedly straight to the dead-letter queue.
        Grant(("sqs:SendMessage",), (addresses.queue_arn(names.PUSH), addresses.dlq_arn(names.PUSH))),
    ]


def deliver(addresses: Addresses) -> list[Grant]:
    """x-push: calls URLs of third parties, so it gets the least permissions."""
    # It counts the time that each host and each owner takes, and writes nothing else of the table.
    shares = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{SHARE_PREFIX}*"]}}
    return [
        common.write_logs(addresses, names.PUSH),
        common.consume_queue(addresses, names.PUSH),
        Grant(("dynamodb:GetItem",), (addresses.table_arn("tasks"),)),
        Grant(("dynamodb:UpdateItem",), (addresses.table_arn("tasks"),), conditions=shares),
        common.read_roles(addresses),
    ]
