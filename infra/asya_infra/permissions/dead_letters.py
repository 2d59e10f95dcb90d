"""Permissions of the DLQ function: receive, claim, report, copy. It cannot delete a message."""

from asya.dead_letters.letters import watched_actors
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import LETTER_PREFIX, REPORTED_PREFIX
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant

_RECEIVE = ("sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")


def dlq(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-dlq: receives from every dead-letter queue with envelopes; operators alone reach those of reports."""
    fan_in_actors = common.fan_in_actors(table)
    return [
        common.write_logs(addresses, names.DLQ),
        _receive(addresses, table),
        common.send_reports(addresses),
        common.send_ends(addresses),
        *([common.send_messages(addresses, fan_in_actors)] if fan_in_actors else []),
        common.objects(addresses, common.WRITE, "dlq"),
        Grant(("dynamodb:Query",), (addresses.table_arn("tasks"),)),
        # Like the end actors, it claims the end of an envelope: the first claim counts.
        common.claims(addresses),
        _own_items(addresses),
        *common.judge_senders(addresses),
    ]


def _receive(addresses: Addresses, table: MeshTable) -> Grant:
    return Grant(_RECEIVE, tuple(addresses.dlq_arn(actor) for actor in watched_actors(table)))


def _own_items(addresses: Addresses) -> Grant:
    """Allow its own items in the table of claims. The claims themselves it can neither read nor overwrite."""
    own_keys = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{REPORTED_PREFIX}*", f"{LETTER_PREFIX}*"]}}
    return Grant(("dynamodb:BatchGetItem", "dynamodb:PutItem"), (addresses.table_arn("sink"),), conditions=own_keys)
