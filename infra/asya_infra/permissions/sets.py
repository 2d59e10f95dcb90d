"""What putting sets of slices together takes (`protocol §9`)."""

from asya.fan_in.aws.items import OPEN_INDEX
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import actors, common
from asya_infra.permissions.grant import Grant


def fan_in(addresses: Addresses, table: MeshTable, actor: str, api_id: str) -> list[Grant]:
    """A fan-in actor: stores slices, claims their ends, and sends the merged envelope wherever the origin's route leads."""
    return [
        *actors.sidecar(addresses, actor, api_id),
        common.send(addresses, actors.targets_of(table, actor)),
        common.objects(addresses, common.READ_WRITE, "payloads", "frames"),
        common.table(addresses, "fan-in"),
        common.table(addresses, "sink"),
    ]


def sweep(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """Finds the open sets and has their actors look at them."""
    index = f"{addresses.table_arn('fan-in')}/index/{OPEN_INDEX}"
    return [
        common.logs(addresses, names.FAN_IN_SWEEP),
        common.send(addresses, common.fan_in_actors(table)),
        Grant(("dynamodb:Query",), (index,)),
    ]
