"""Permissions of fan-in actors and of their sweep (`protocol §9`)."""

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import OPEN_INDEX
from asya_infra.addresses import Addresses
from asya_infra.permissions import actors, common
from asya_infra.permissions.grant import Grant


def fan_in(addresses: Addresses, table: MeshTable, actor: str) -> list[Grant]:
    """A fan-in actor: stores slices, claims their ends, and sends the merged envelope along the origin's route."""
    return [
        *actors.sidecar(addresses, actor),
        common.send_ends(addresses),
        common.send_messages(addresses, actors.send_targets(table, actor)),
        common.write_payloads(addresses),
        *common.buffer_frames(addresses, actor),
        # It repeats a fan-out from the frames of the actor that fanned out.
        common.objects(addresses, common.READ, "buffered"),
        common.objects(addresses, common.WRITE, "frames/fan-in"),
        common.list_keys(addresses, "buffered", "frames"),
        common.table(addresses, "fan-in"),
        common.claims(addresses),
        common.keep_superseded(addresses),
    ]


def sweep(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-fan-in-sweep: reads the open sets and sends checks to their fan-in actors."""
    index = f"{addresses.table_arn('fan-in')}/index/{OPEN_INDEX}"
    return [
        common.write_logs(addresses, names.FAN_IN_SWEEP),
        common.send_messages(addresses, common.fan_in_actors(table)),
        Grant(("dynamodb:Query",), (index,)),
    ]
