"""Decides whether an actor of the crew may continue a route, by the sender of the message (`protocol §1.authority`)."""

from asya.function.hop import Hop
from asya.function.targets import TargetError, actual_actor, check_way, starters
from asya.protocol import headers, names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import slice_header
from asya.senders.envelopes import ACTOR, RETRY
from asya.senders.statements import Proof, problem, proof_of


def check_sender(hop: Hop, function: str | None) -> None:
    """Check at an actor of the crew that the sender of an envelope may send where its route leads.

    Args:
        hop: the received envelope, before anything else is done with it: a copy that this actor sends has its own role.
        function: the function of the mesh that has sent the message; None for a sender outside.

    Raises:
        TargetError: the sender may not send to an actor on the way to the first one with code of users.
    """
    if not hop.spec.continues:
        return
    envelope, route = hop.envelope, hop.envelope.route
    if hop.actor == names.WAIT:
        _check_own_retry(hop, function)
    elif is_trusted(hop.mesh, function, at=hop.actor):
        return
    elif function is None:
        check_way(hop.mesh, envelope, starters(hop.mesh, hop.actor), route.next, continued=True)
    elif not _is_item(hop):
        holders = (function,) if function in hop.mesh.actors else ()
        check_way(hop.mesh, envelope, holders, (route.curr, *route.next), continued=True)


def is_trusted(mesh: MeshTable, function: str | None, *, at: str = "") -> bool:
    """Whether a function has checked what it sends on: its role alone lets it start and continue tasks."""
    return any(proof_of(each, mesh, function, at=at) is Proof.ROLE for each in ACTOR)


def _check_own_retry(hop: Hop, function: str | None) -> None:
    """x-wait sends an envelope back to the actor whose retry it is, and to no other."""
    actor = actual_actor(hop.envelope, hop.envelope.route.curr)
    refused = problem(RETRY, hop.mesh, function, at=hop.actor, about=actor)
    if refused is not None:
        raise TargetError(f"{refused} at {hop.actor}; only the retries of an actor itself wait there")


def _is_item(hop: Hop) -> bool:
    """Whether the envelope is an item of a set at its fan-in actor: only slice 0 leaves it, along its own route."""
    if hop.spec.kind != "fan_in" or headers.FAN_IN not in hop.envelope.headers:
        return False
    try:
        header = slice_header(hop.envelope)
    except ValueError:
        return True  # it is refused as no slice
    return header is not None and header.slice_index > 0
