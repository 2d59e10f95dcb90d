"""What the gateway's functions may do."""

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.index import CHILDREN_INDEX, DUE_INDEX, LISTED_INDEX
from asya_infra.addresses import Addresses
from asya_infra.permissions import actors, common
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.spark import heavy_actors


def ingest(addresses: Addresses) -> list[Grant]:
    """Takes the mesh's reports."""
    return [common.logs(addresses, names.GATEWAY_INGEST), common.table(addresses, "tasks")]


def api(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """Makes tasks, shows them, replays them; a large payload goes by S3 like any sender's (`protocol §4`, `§12`)."""
    return [
        common.logs(addresses, names.GATEWAY_API),
        common.table(addresses, "tasks"),
        _find(addresses, LISTED_INDEX, CHILDREN_INDEX),
        *([common.send(addresses, {names.COMPLETION})] if heavy_actors(table) else []),
        # x-sink gets what was paused and is canceled; x-resume is among those a route may name.
        common.send(addresses, {names.SINK, *actors.routable(table)}),
        common.objects(addresses, common.WRITE, "inbox"),
        *_replay(addresses),
        *([common.read_set(addresses)] if common.puts_together(table) else []),
    ]


def stream(addresses: Addresses, function: str, key_arn: str) -> list[Grant]:
    """Looks on, and gives tokens for that.

    Args:
        function: which of those that do.
        key_arn: the key behind the tokens.
    """
    return [
        common.logs(addresses, function),
        Grant(("dynamodb:Query",), (addresses.table_arn("tasks"),)),
        Grant(("kms:GenerateMac",), (key_arn,)),
    ]


def sweep(addresses: Addresses) -> list[Grant]:
    """Finds tasks past their deadline, and writes so."""
    return [
        common.logs(addresses, names.TASK_SWEEP),
        common.table(addresses, "tasks"),
        _find(addresses, DUE_INDEX),
    ]


def _find(addresses: Addresses, *indexes: str) -> Grant:
    table = addresses.table_arn("tasks")
    return Grant(("dynamodb:Query",), tuple(f"{table}/index/{index}" for index in indexes))


def _replay(addresses: Addresses) -> list[Grant]:
    """What failed envelopes, checkpoints and kept inputs are found and read with."""
    results = addresses.results
    kept = [addresses.objects_arn(results.bucket, f"{results.prefix}*")]
    why = "Whatever was kept of an envelope may be what it is replayed from."
    return [
        common.objects(addresses, common.READ, "hops", "dlq", "paused", "payloads", "inbox"),
        Grant(("s3:GetObject",), tuple(kept), why=why),
        common.tell_missing(addresses),
        Grant(("s3:ListBucket",), (addresses.bucket_arn(results.bucket),)),
    ]
