"""What pausing tasks and resuming them takes (`protocol §11`)."""

from asya.pause.aws.notices import source_of
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.items import WAITING_INDEX
from asya_infra.addresses import Addresses
from asya_infra.permissions import actors, common
from asya_infra.permissions.grant import Grant


def pause(addresses: Addresses, actor: str, api_id: str) -> list[Grant]:
    """A pause actor: keeps what comes and tells of it. It sends nothing on, but to an end what cannot pause."""
    # AWS always says which source it is about, other clouds may not.
    own = {"StringEqualsIfExists": {"events:source": source_of(addresses.namespace)}}
    return [
        *actors.sidecar(addresses, actor, api_id),
        common.send(addresses, common.ends(actor)),
        common.objects(addresses, common.READ_WRITE, "payloads", "paused"),
        Grant(("events:PutEvents",), (addresses.arn("events", "event-bus/default"),), conditions=own),
    ]


def resume(addresses: Addresses, table: MeshTable, api_id: str) -> list[Grant]:
    """x-resume: sends on what was paused, wherever its route leads, and leaves a tombstone."""
    return [
        *actors.sidecar(addresses, names.RESUME, api_id),
        common.send(addresses, actors.targets_of(table, names.RESUME)),
        common.objects(addresses, common.READ_WRITE, "payloads", "paused"),
    ]


def sweep(addresses: Addresses) -> list[Grant]:
    """Finds tasks of whose pause something is still to be sent, and sends it as the gateway would have."""
    index = f"{addresses.table_arn('tasks')}/index/{WAITING_INDEX}"
    tasks = tuple(f"dynamodb:{action}" for action in ("BatchGetItem", "PutItem", "Query"))
    return [
        common.logs(addresses, names.PAUSE_SWEEP),
        Grant(("dynamodb:Query",), (index,)),
        Grant(tasks, (addresses.table_arn("tasks"),)),
        common.send(addresses, {names.RESUME, names.SINK}),
        common.objects(addresses, common.READ, "paused"),
        common.objects(addresses, common.WRITE, "inbox"),
        common.tell_missing(addresses),
    ]
