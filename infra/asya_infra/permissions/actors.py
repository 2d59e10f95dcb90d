"""What the functions of actors may do (`protocol §1`: where an actor may send; `§4`, `§6`: what it keeps in S3)."""

from collections.abc import Iterable

from asya.crew.result_index import RECENT_PREFIX
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant


def routable(table: MeshTable) -> set[str]:
    """Every actor that a route of this mesh may name."""
    return {name for name in table.actors if names.may_stand_in_route(name)}


def targets_of(table: MeshTable, actor: str) -> set[str]:
    """Where an actor may send: where its declared routes lead, to itself, to the end actors and the routable crew."""
    declared = table.actors[actor].can_send_to
    crew = names.ROUTABLE_CREW & table.actors.keys()
    return common.ends(actor, *crew, *(routable(table) if declared is None else declared))


def light(addresses: Addresses, table: MeshTable, actor: str, api_id: str, access: Iterable[Grant]) -> list[Grant]:
    """A sidecar with the user's handler in it."""
    return [
        *sidecar(addresses, actor, api_id),
        common.send(addresses, targets_of(table, actor)),
        common.objects(addresses, common.READ_WRITE, "payloads", "frames", "hops"),
        *([common.table(addresses, "hops")] if table.actors[actor].deduplicate else []),
        *([common.breaker(addresses)] if table.actors[actor].resiliency.circuit_breaker else []),
        *access,
    ]


def end(addresses: Addresses, table: MeshTable, actor: str, access: Iterable[Grant]) -> list[Grant]:
    """A user's own end actor: nothing is routed or reported for it (`protocol §5`), but sets are told of lost slices (`§9`)."""
    return [
        common.logs(addresses, actor),
        common.consume(addresses, actor),
        common.send(addresses, common.ends(actor, *common.fan_in_actors(table))),
        common.objects(addresses, common.READ, "inbox"),
        # What a failing end actor hands to x-sump may need a claim check.
        common.objects(addresses, common.READ_WRITE, "payloads"),
        common.tell_missing(addresses),
        *access,
    ]


def admit(addresses: Addresses, actor: str, api_id: str) -> list[Grant]:
    """The sidecar of a heavy actor: it makes envelopes pending; the job does what the user's code does."""
    return [
        *sidecar(addresses, actor, api_id),
        common.send(addresses, common.ends(actor, names.DISPATCH)),
        common.objects(addresses, common.READ_WRITE, "payloads", "pending", "hops"),
        common.table(addresses, "pending"),
    ]


def sink(addresses: Addresses, table: MeshTable, api_id: str) -> list[Grant]:
    """x-sink: claims an id, writes its result, reports it, feeds the hooks, tells sets of lost slices (`protocol §11`)."""
    results = addresses.results
    put = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject")
    why = "Results are found by their id; a later generation's replaces an older one's."
    return [
        *sidecar(addresses, names.SINK, api_id),
        common.send(addresses, common.ends(*table.sink.hooks, *common.fan_in_actors(table))),
        common.objects(addresses, common.READ_WRITE, "payloads"),
        common.table(addresses, "sink"),
        Grant(put, (addresses.objects_arn(results.bucket, f"{results.prefix}*"),), why=why),
    ]


def sump(addresses: Addresses, table: MeshTable, api_id: str) -> list[Grant]:
    """x-sump: claims the end of what failed, keeps a copy, reports and indexes it, tells sets of lost slices (`protocol §11`)."""
    prefixes = ("sump/", *([RECENT_PREFIX] if table.sink.index else []))
    results = addresses.results
    copies = tuple(addresses.objects_arn(results.bucket, f"{results.prefix}{prefix}*") for prefix in prefixes)
    why = "Copies are found by the envelope's id, rows of the index by their day and content."
    return [
        *sidecar(addresses, names.SUMP, api_id),
        common.send(addresses, {names.SUMP, *common.fan_in_actors(table)}),
        common.objects(addresses, common.READ, "payloads"),
        common.table(addresses, "sink"),
        Grant(("s3:AbortMultipartUpload", "s3:PutObject"), copies, why=why),
    ]


def checkpoint(addresses: Addresses, table: MeshTable, api_id: str) -> list[Grant]:
    """x-checkpoint: keeps what comes and sends it on, wherever its route leads (`protocol §11`)."""
    results = addresses.results
    checkpoints = addresses.objects_arn(results.bucket, f"{results.prefix}checkpoint/*")
    why = "Checkpoints are found by the envelope's id."
    return [
        *sidecar(addresses, names.CHECKPOINT, api_id),
        common.send(addresses, targets_of(table, names.CHECKPOINT)),
        common.objects(addresses, common.READ_WRITE, "payloads"),
        Grant(("s3:AbortMultipartUpload", "s3:PutObject"), (checkpoints,), why=why),
    ]


def sidecar(addresses: Addresses, actor: str, api_id: str) -> list[Grant]:
    """What every function needs that takes envelopes from a queue and reports on them."""
    return [
        common.logs(addresses, actor),
        common.consume(addresses, actor),
        common.objects(addresses, common.READ, "inbox"),
        common.tell_missing(addresses),
        common.report(addresses, api_id),
    ]
