"""What telling other agents of their tasks takes (`protocol §13`, `/a2a`)."""

from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant


def feed(addresses: Addresses) -> list[Grant]:
    """Reads the changes of the tasks table, and whom to tell of them."""
    table = addresses.table_arn("tasks")
    reading = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    actions = tuple(f"dynamodb:{action}" for action in reading)
    return [
        common.logs(addresses, names.PUSH_FEED),
        Grant(actions, (f"{table}/stream/*",), why="A table's stream is named by the time it was turned on."),
        Grant(("dynamodb:Query",), (table,)),
        # What cannot be made a message goes to the dead-letter queue itself.
        Grant(("sqs:SendMessage",), (addresses.queue_arn(names.PUSH), addresses.dlq_arn(names.PUSH))),
    ]


def deliver(addresses: Addresses) -> list[Grant]:
    """Speaks to strangers, and may hardly do anything else."""
    return [
        common.logs(addresses, names.PUSH),
        common.consume(addresses, names.PUSH),
        Grant(("dynamodb:GetItem",), (addresses.table_arn("tasks"),)),
    ]
