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


def actual_actor(envelope: Envelope, actor: str) -> str:
    """The actor that takes this one's place on the way of this envelope; itself if none does."""
    return overrides(envelope).get(actor, actor) if headers.ROUTE_OVERRIDE in envelope.headers else actor


def check_target(mesh: MeshTable, actor: str) -> str:
    """Return `actor` if an envelope may be sent to it in this mesh.

    Whether the sending actor may send there is not asked here: that is for IAM to say, and being denied is a nack, for a
    permission can be mended (`protocol §5.12`).

    Raises:
        UnknownTargetError: if it is no name, reserved, or not in the mesh.
    """
    if actor in mesh.actors and names.is_routable(actor):
        return actor
    try:
        names.check_label(actor, "actor")
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None
    if not names.is_routable(actor):
        raise UnknownTargetError(f"actor {actor!r} is reserved and may not stand in a route")
    raise UnknownTargetError(f"actor {actor!r} is not in the mesh {mesh.namespace!r}")
