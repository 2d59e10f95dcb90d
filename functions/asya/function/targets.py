"""Targets: resolves route overrides, and checks that an actor may receive envelopes (`protocol §1`, `§3`)."""

from asya.protocol import headers, names
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable


class TargetError(ValueError):
    """A route names an actor that may not receive the envelope; the message names the actor and the cause."""


def overrides(envelope: Envelope) -> dict[str, str]:
    """The overrides of the header `x-asya-route-override`: actual actors by logical actor.

    Entries that are not strings are ignored; the send fails for an unknown actor. The end of a route (`""`) cannot be
    overridden.
    """
    value = envelope.header(headers.ROUTE_OVERRIDE)
    if not isinstance(value, dict):
        return {}
    return {logical: target for logical, target in value.items() if logical and isinstance(target, str)}


def actual_actor(envelope: Envelope, actor: str) -> str:
    """The actor that replaces this one in the route of this envelope; the same actor without an override."""
    return overrides(envelope).get(actor, actor) if headers.ROUTE_OVERRIDE in envelope.headers else actor


def awaits_deployment(envelope: Envelope, mesh: MeshTable, actor: str) -> bool:
    """Whether `actor` does not know the next actor, or may not send to it, but the sender has another version of the mesh.

    So it is while a deployment updates one function after the other.
    """
    if not envelope.route.next or not mesh.version:
        return False
    target = actual_actor(envelope, envelope.route.next[0])
    if not names.is_routable(target) or (target in mesh.actors and may_send(mesh, actor, target)):
        return False
    sender = envelope.header(headers.MESH_VERSION)
    return isinstance(sender, str) and sender != mesh.version


def with_versions(message: str, envelope: Envelope, mesh: MeshTable) -> str:
    """An error about an unknown target, with the versions of this function and of the sender."""
    sender = envelope.header(headers.MESH_VERSION)
    if not mesh.version or not sender:
        return message
    return f"{message}; this function has version {mesh.version} of the mesh, and the sender {sender}"


def check_target(mesh: MeshTable, actor: str) -> str:
    """Return `actor` if it may receive envelopes in this mesh.

    Raises:
        TargetError: the name is invalid or reserved, or the mesh has no such actor.
    """
    if actor in mesh.actors and names.is_routable(actor):
        return actor
    try:
        names.check_label(actor, "actor")
    except ValueError as error:
        raise TargetError(str(error)) from None
    if not names.is_routable(actor):
        raise TargetError(f"actor {actor!r} is reserved and cannot be in a route")
    raise TargetError(f"actor {actor!r} is not in the mesh {mesh.namespace!r}")


def may_send(mesh: MeshTable, sender: str, target: str) -> bool:
    """Whether an actor may send envelopes to another one, as its role may (`protocol §1`)."""
    allowed = mesh.actors[sender].can_send_to
    return allowed is None or target in allowed or target == sender or target in names.ROUTABLE_CREW


def check_next(mesh: MeshTable, sender: str, target: str) -> str:
    """Return `target` if it may receive envelopes in this mesh, and from this sender.

    Raises:
        TargetError: the name is invalid or reserved, the mesh has no such actor, or the sender may not send to it.
    """
    check_target(mesh, target)
    if not may_send(mesh, sender, target):
        raise TargetError(f"actor {sender!r} may not send to {target!r}; {missing_key(mesh, sender, target)}")
    return target


def missing_key(mesh: MeshTable, sender: str, target: str) -> str:
    """The key of the mesh file that lets an actor send to another one, beside those that it may send to already."""
    targets = sorted({*(mesh.actors[sender].can_send_to or ()), target})
    return f"to allow it, write in the mesh file under actors.{sender}: can_send_to: [{', '.join(targets)}]"
