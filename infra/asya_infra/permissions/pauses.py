"""Permissions of pause and wait actors, of x-resume and of the sweep of pauses (`protocol §11`)."""

from asya.pause.aws.notices import source_of
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import WAITING_INDEX
from asya_infra.addresses import Addresses
from asya_infra.permissions import actors, common
from asya_infra.permissions.grant import Grant


def pause(addresses: Addresses, actor: str) -> list[Grant]:
    """A pause actor: stores envelopes, notes pauses beside the claims on ends, and publishes events.

    It sends only to the end actors and to itself.
    """
    # AWS always sets this key; the local cloud may not.
    own = {"StringEqualsIfExists": {"events:source": source_of(addresses.namespace)}}
    return [
        *actors.sidecar(addresses, actor),
        common.send_ends(addresses),
        common.send_messages(addresses, common.with_end_actors(actor)),
        common.write_payloads(addresses, common.with_end_actors(actor)),
        common.objects(addresses, common.READ_WRITE, "paused"),
        common.list_keys(addresses, "paused"),
        common.claims(addresses),
        Grant(("events:PutEvents",), (addresses.arn("events", "event-bus/default"),), conditions=own),
    ]


def resume(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-resume: sends a paused envelope along its route and writes a tombstone."""
    return [
        *actors.reporter(addresses, names.RESUME),
        common.send_messages(addresses, actors.send_targets(table, names.RESUME)),
        *common.read_own_payloads(addresses, names.RESUME),
        common.write_payloads(addresses),
        common.objects(addresses, common.READ_WRITE, "paused"),
        common.list_keys(addresses, "paused"),
    ]


def wait(addresses: Addresses, table: MeshTable, actor: str) -> list[Grant]:
    """A wait actor: holds envelopes, and sends them along their routes when they are due.

    If its wait stops the deadline, it pauses tasks as a pause actor does, but without an event. x-wait sends to the actors whose
    retries it holds.
    """
    targets = (
        common.with_end_actors(actor, *retrying(table)) if actor == names.WAIT else actors.send_targets(table, actor)
    )
    prefix = "paused" if table.actors[actor].pauses else "waiting"
    return [
        *actors.sidecar(addresses, actor),
        common.send_ends(addresses),
        common.send_messages(addresses, targets),
        common.write_payloads(addresses, targets),
        common.objects(addresses, common.READ_WRITE, prefix),
        common.list_keys(addresses, prefix),
        *([common.claims(addresses)] if table.actors[actor].pauses else []),
    ]


def retrying(table: MeshTable) -> set[str]:
    """Return the actors whose retries x-wait holds."""
    return {name for name, actor in table.actors.items() if actor.retries_after_days}


def sweep(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-pause-sweep: finds pauses with an unfinished release and sends it in place of the gateway, and sends what waited.

    An earlier deployment may have held envelopes for actors that no longer wait, or are gone. So it may send to every actor, and
    read what waited, also in a mesh without waits.
    """
    index = f"{addresses.table_arn('tasks')}/index/{WAITING_INDEX}"
    tasks = tuple(f"dynamodb:{action}" for action in ("BatchGetItem", "PutItem", "Query"))
    return [
        common.write_logs(addresses, names.PAUSE_SWEEP),
        Grant(("dynamodb:Query",), (index,)),
        Grant(tasks, (addresses.table_arn("tasks"),)),
        common.send_messages(addresses, actors.send_targets(table, names.RESUME)),
        common.objects(addresses, common.READ, "paused"),
        common.objects(addresses, common.READ_WRITE, "waiting"),
        common.objects(addresses, common.WRITE, "inbox"),
        common.list_keys(addresses, "paused", "waiting"),
    ]
