"""What the DLQ function may do: look, claim, report, copy. It has no permission to delete a message."""

from asya.dead_letters.letters import watched
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant

# An inline policy ends at 10,240 characters; beyond this many queues one pattern stands for all of them.
_QUEUES_LISTED = 40
_LOOK = ("sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")


def dlq(addresses: Addresses, table: MeshTable, api_id: str) -> list[Grant]:
    """Looks at every dead-letter queue of the mesh."""
    put_together = [name for name, actor in table.actors.items() if actor.kind == "fan_in"]
    return [
        common.logs(addresses, names.DLQ),
        _look(addresses, table),
        common.report(addresses, api_id),
        *([common.send(addresses, put_together)] if put_together else []),
        common.objects(addresses, common.WRITE, "dlq"),
        Grant(("dynamodb:Query",), (addresses.table_arn("tasks"),)),
        # It claims the end of what was given up, as the end actors do: one end per envelope, whoever sees it first.
        Grant(("dynamodb:UpdateItem",), (addresses.table_arn("sink"),)),
        _notes(addresses),
    ]


def _look(addresses: Addresses, table: MeshTable) -> Grant:
    queues = [addresses.dlq_arn(actor) for actor in watched(table)]
    if len(queues) > _QUEUES_LISTED:
        why = "More queues than fit into a policy: the dead-letter queues of this namespace."
        return Grant(_LOOK, (addresses.dlq_arn("*"),), why=why)
    return Grant(_LOOK, tuple(queues))


def _notes(addresses: Addresses) -> Grant:
    """Its own notes, beside the claims: those are only ever claimed, never put or read."""
    own = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["DLQ#*"]}}
    return Grant(("dynamodb:BatchGetItem", "dynamodb:PutItem"), (addresses.table_arn("sink"),), conditions=own)
