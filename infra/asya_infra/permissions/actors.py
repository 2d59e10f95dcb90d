"""Permissions of the functions of actors: targets (`protocol §1`), objects in S3 (`§4`, `§6`), tables.

What the mesh file grants is in `permissions.access` and `permissions.secrets`, the job runs of heavy actors are in
`permissions.spark`.
"""

from collections.abc import Iterable

from asya.crew.result_index import RECENT_PREFIX
from asya.protocol import names
from asya.protocol.keys import CANCELED_PREFIX, SUMP_PREFIX, SUPERSEDED_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant


def routable_actors(table: MeshTable) -> set[str]:
    """Return every actor that a route of this mesh may contain."""
    return {name for name in table.actors if names.is_routable(name)}


def send_targets(table: MeshTable, actor: str) -> set[str]:
    """Return the actors that an actor may send to: its targets, itself, the end actors and the routable crew.

    Long delays of its retries wait in x-wait.
    """
    declared = table.actors[actor].can_send_to
    crew = names.ROUTABLE_CREW & table.actors.keys()
    if table.actors[actor].retries_after_days:
        crew |= {names.WAIT}
    return common.with_end_actors(actor, *crew, *(routable_actors(table) if declared is None else declared))


def _declared_targets(table: MeshTable, actor: str) -> set[str] | None:
    """Return the targets of an actor with a list of its own; None if it may send to every actor."""
    return None if table.actors[actor].can_send_to is None else send_targets(table, actor)


def _keep_input(addresses: Addresses, table: MeshTable, actor: str) -> list[Grant]:
    """Allow storing the inputs of hops, for `keep_input`. Only the gateway reads them."""
    return [common.objects(addresses, common.WRITE, "hops")] if table.actors[actor].keep_input else []


def light(addresses: Addresses, table: MeshTable, actor: str, access: Iterable[Grant]) -> list[Grant]:
    """A light actor: a sidecar with the user's handler."""
    return [
        *sidecar(addresses, actor),
        common.send_messages(addresses, send_targets(table, actor)),
        common.write_payloads(addresses, _declared_targets(table, actor)),
        *common.buffer_frames(addresses, actor),
        common.deny_slices(addresses),
        *_keep_input(addresses, table, actor),
        *([common.completed_hops(addresses)] if table.actors[actor].deduplicate else []),
        *([common.circuit_breaker(addresses)] if table.actors[actor].resiliency.circuit_breaker else []),
        *access,
    ]


def end(addresses: Addresses, actor: str, access: Iterable[Grant]) -> list[Grant]:
    """A user's end actor. It neither routes nor reports: x-sink and x-sump end its envelopes (`protocol §5`)."""
    return [
        common.write_logs(addresses, actor),
        common.consume_queue(addresses, actor),
        common.send_messages(addresses, common.with_end_actors(actor)),
        *common.read_own_payloads(addresses, actor),
        # A failed envelope on its way to x-sump may need a claim check.
        common.write_payloads(addresses, common.with_end_actors(actor)),
        *common.admit(addresses, actor),
        common.note_letters(addresses, actor),
        *access,
    ]


def enqueue(addresses: Addresses, table: MeshTable, actor: str) -> list[Grant]:
    """The sidecar of a heavy actor: it makes envelopes pending. User code runs in the job, with the job's role."""
    return [
        *sidecar(addresses, actor),
        common.send_messages(addresses, common.with_end_actors(actor, names.DISPATCH)),
        common.write_payloads(addresses, common.with_end_actors(actor)),
        common.objects(addresses, common.WRITE, f"pending/{actor}"),
        *_keep_input(addresses, table, actor),
        common.table(addresses, "pending"),
    ]


def sink(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-sink: claims and stores ends, reports them, sends copies to hooks, notifies sets of lost slices (`§11`)."""
    results = addresses.results
    put = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject")
    reason = "The keys of results contain envelope ids. A later generation replaces the object of an earlier one."
    return [
        *reporter(addresses, names.SINK),
        common.send_ends(addresses),
        common.send_messages(addresses, common.with_end_actors(*table.sink.hooks, *common.fan_in_actors(table))),
        *common.read_all_payloads(addresses),
        common.write_payloads(addresses, common.with_end_actors(*table.sink.hooks, *common.fan_in_actors(table))),
        common.claims(addresses),
        common.read_claims(addresses),
        _list_results(addresses),
        Grant(put, (addresses.objects_arn(results.bucket, f"{results.prefix}*"),), reason=reason),
    ]


def sump(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-sump: claims failed ends, stores a copy, reports and indexes it, notifies sets of lost slices (`§11`).

    What it finds canceled it stores as x-sink does.
    """
    written = (SUMP_PREFIX, SUPERSEDED_PREFIX, CANCELED_PREFIX, *([RECENT_PREFIX] if table.sink.index else []))
    replaced = sorted({CANCELED_PREFIX, table.sink.failed_prefix, table.sink.succeeded_prefix})
    reason = "The keys of copies and results contain envelope ids, those of index rows their day and a digest."
    return [
        *reporter(addresses, names.SUMP),
        common.send_ends(addresses),
        common.send_messages(addresses, {names.SUMP, *common.fan_in_actors(table)}),
        *common.read_all_payloads(addresses),
        common.claims(addresses),
        common.read_claims(addresses),
        _list_results(addresses),
        # A conditional write or deletion reads the ETag of the object. The end of a later generation removes older results.
        Grant(("s3:DeleteObject", "s3:GetObject"), _results(addresses, SUMP_PREFIX, *replaced), reason=reason),
        Grant(("s3:AbortMultipartUpload", "s3:PutObject"), _results(addresses, *written), reason=reason),
    ]


def _results(addresses: Addresses, *prefixes: str) -> tuple[str, ...]:
    """Return the patterns of the results below these prefixes."""
    results = addresses.results
    return tuple(addresses.objects_arn(results.bucket, f"{results.prefix}{prefix}*") for prefix in prefixes)


def _list_results(addresses: Addresses) -> Grant:
    """Allow listing results. Without it S3 answers 403 for a missing object instead of 404."""
    return common.list_bucket_keys(addresses, addresses.results.bucket, addresses.results.prefix)


def checkpoint(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-checkpoint: stores a copy of each envelope and sends the envelope along its route (`protocol §11`)."""
    results = addresses.results
    checkpoints = addresses.objects_arn(results.bucket, f"{results.prefix}checkpoint/*")
    reason = "The keys of checkpoints contain envelope ids."
    return [
        *sidecar(addresses, names.CHECKPOINT),
        common.send_messages(addresses, send_targets(table, names.CHECKPOINT)),
        common.write_payloads(addresses),
        Grant(("s3:AbortMultipartUpload", "s3:PutObject"), (checkpoints,), reason=reason),
    ]


def sidecar(addresses: Addresses, actor: str) -> list[Grant]:
    """A function that receives envelopes from its queue, asks for the states of their tasks, and reports on them."""
    return [*reporter(addresses, actor), *common.read_own_payloads(addresses, actor), common.read_states(addresses)]


def reporter(addresses: Addresses, actor: str) -> list[Grant]:
    """A function that receives envelopes from its queue and reports on them."""
    return [
        common.write_logs(addresses, actor),
        common.consume_queue(addresses, actor),
        common.send_reports(addresses),
        *common.admit(addresses, actor),
        common.note_letters(addresses, actor),
    ]
