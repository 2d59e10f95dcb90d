"""Which queue an actor's name leads to, and whether it may be sent to at all (`protocol §1`, `§3`)."""

from asya.protocol import headers, names
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable


class UnknownTargetError(ValueError):
    """A route names an actor that nothing may be sent to; the message says which and why."""


def overrides(envelope: Envelope) -> dict[str, str]:
    """The producer's `x-asya-route-override`: logical actor → the actor that takes its place.

    Entries that are no names are ignored here; a name that is one but leads nowhere fails at the sending. The end of a route
    (`""`) cannot be overridden.
    """
    value = envelope.header(headers.ROUTE_OVERRIDE)
    if not isinstance(value, dict):
        return {}
    return {logical: actual for logical, actual in value.items() if logical and isinstance(actual, str)}


def check_target(mesh: MeshTable, actor: str, *, sender: str | None = None) -> str:
    """Return `actor` if an envelope may be sent to it in this mesh.

    Args:
        sender: the actor that would send it; where it may send is part of its permissions (`can_send_to`), so that anything else
            would be denied, each time again.

    Raises:
        UnknownTargetError: if it is no name, reserved, not in the mesh, or not among those that the sender may send to.
    """
    try:
        names.check_label(actor, "actor")
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None
    if not names.may_stand_in_route(actor):
        raise UnknownTargetError(f"actor {actor!r} is reserved and may not stand in a route")
    if actor not in mesh.actors:
        raise UnknownTargetError(f"actor {actor!r} is not in the mesh {mesh.namespace!r}")
    if sender is not None and not _may_send(mesh, sender, actor):
        raise UnknownTargetError(
            f"actor {sender!r} may not send to {actor!r}; name it in can_send_to, or lead a tool's route that way"
        )
    return actor


def _may_send(mesh: MeshTable, sender: str, actor: str) -> bool:
    declared = mesh.actors[sender].can_send_to if sender in mesh.actors else None
    return declared is None or actor == sender or actor in names.ROUTABLE_CREW or actor in declared
