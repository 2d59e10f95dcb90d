"""Permissions of the function that starts the tasks of triggers (`protocol §16`)."""

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import CHILDREN_INDEX, WEBHOOK_ATTRIBUTES
from asya.protocol.triggers import Trigger
from asya.triggers.lanes import window_kind
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.secrets import secret_grants


def start(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-triggers: writes records, and sends to the first actors of the routes of triggers alone."""
    targets = {first_actor(table, trigger) for trigger in table.triggers.values()}
    cancels = any(trigger.overlap == "cancel-previous" for trigger in table.triggers.values())
    return [
        common.write_logs(addresses, names.TRIGGERS),
        common.consume_queue(addresses, names.TRIGGERS),
        common.table(addresses, "tasks"),
        common.send_messages(addresses, targets),
        common.give_up(addresses, names.TRIGGERS),
        common.objects(addresses, common.WRITE, *(f"inbox/{target}" for target in sorted(targets))),
        *([common.objects(addresses, common.READ, f"inbox/{names.TRIGGERS}")] if table.webhooks else []),
        common.read_roles(addresses),
        *_check_lanes(addresses, table),
        *(_cancel(addresses, table) if cancels else []),
    ]


def _check_lanes(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """Allow messages to the function itself, which close windows (`protocol §16.window.close`)."""
    has_windows = any(window_kind(trigger) is not None for trigger in table.triggers.values())
    return [common.send_messages(addresses, {names.TRIGGERS})] if has_windows else []


def _cancel(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """Allow the cancellation of tasks with their ends, children, paused envelopes and job runs."""
    children = f"{addresses.table_arn('tasks')}/index/{CHILDREN_INDEX}"
    grants = [
        Grant(("dynamodb:Query",), (children,)),
        common.claims(addresses),
        common.read_claims(addresses),
    ]
    if any(actor.kind == "spark" for actor in table.actors.values()):
        grants.append(common.send_messages(addresses, {names.COMPLETION}))
    if any(actor.pauses for actor in table.actors.values()):
        grants += [
            common.send_messages(addresses, {names.RESUME, names.SINK}),
            common.objects(addresses, common.READ, "paused"),
            common.objects(addresses, common.WRITE, f"inbox/{names.RESUME}", f"inbox/{names.SINK}"),
            common.list_keys(addresses, "paused"),
        ]
    return grants


def webhooks(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-hooks, which strangers may call: reads the keys of webhooks and which tasks exist, and sends to x-triggers."""
    return [
        common.write_logs(addresses, names.WEBHOOKS),
        *secret_grants((webhook.secret for webhook in table.webhooks.values()), addresses),
        common.send_messages(addresses, {names.TRIGGERS}),
        common.objects(addresses, common.WRITE, f"inbox/{names.TRIGGERS}"),
        common.read_attributes(addresses, WEBHOOK_ATTRIBUTES),
    ]


def first_actor(table: MeshTable, trigger: Trigger) -> str:
    """Return the actor at which the tasks of a trigger start."""
    route = table.tools[trigger.tool].route if trigger.tool is not None else trigger.route
    return route[0]
