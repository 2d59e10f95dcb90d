"""Permissions of the function that starts the tasks of triggers (`protocol §16`)."""

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.triggers import Trigger
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant


def start(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-triggers: writes records, and sends to the first actors of the routes of triggers alone."""
    targets = {first_actor(table, trigger) for trigger in table.triggers.values()}
    return [
        common.write_logs(addresses, names.TRIGGERS),
        common.consume_queue(addresses, names.TRIGGERS),
        common.table(addresses, "tasks"),
        common.send_messages(addresses, targets),
        Grant(("sqs:SendMessage",), (addresses.dlq_arn(names.TRIGGERS),)),
        common.objects(addresses, common.WRITE, *(f"inbox/{target}" for target in sorted(targets))),
        common.read_roles(addresses),
    ]


def first_actor(table: MeshTable, trigger: Trigger) -> str:
    """Return the actor at which the tasks of a trigger start."""
    route = table.tools[trigger.tool].route if trigger.tool is not None else trigger.route
    return route[0]
