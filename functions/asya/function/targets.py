"""Targets: resolves route overrides, and checks that an actor may receive envelopes (`protocol §1`, `§3`)."""

from collections.abc import Sequence

from asya.protocol import headers, names
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, MeshTable


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
    """Whether `actor` does not know where its route leads, or may not send there, but the sender has another version of the mesh.

    So it is while a deployment updates one function after the other.
    """
    ahead = envelope.route.next
    if not ahead or not mesh.version or not names.is_routable(actual_actor(envelope, ahead[0])):
        return False
    try:
        check_way(mesh, envelope, (actor,), ahead)
    except TargetError:
        return is_of_another_version(envelope, mesh)
    return False


def is_of_another_version(envelope: Envelope, mesh: MeshTable) -> bool:
    """Whether the sender of an envelope has another version of the mesh than this function."""
    sender = envelope.header(headers.MESH_VERSION)
    return bool(mesh.version) and isinstance(sender, str) and sender != mesh.version


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
    advice = f"; write in the mesh file under crew: routable: [{actor}]" if actor in names.ROUTABLE_CREW else ""
    raise TargetError(f"actor {actor!r} is not in the mesh {mesh.namespace!r}{advice}")


_WITHOUT_EDGES = frozenset({"crew", "fan_in"})


def check_way(
    mesh: MeshTable, envelope: Envelope, holders: tuple[str, ...], ahead: Sequence[str], *, continued: bool = False
) -> None:
    """Check that an envelope may go from its holders to the first actor ahead that runs code of users (`protocol §1.authority`).

    The actors of the crew on the way continue for the holders, and lend no right of their own. A pause or wait actor with targets
    of its own becomes a holder, if a holder was given an edge to it.

    Args:
        holders: the actors whose edges count.
        ahead: the actors of the route, which overrides may replace.
        continued: whether an actor of the crew continues the route, so that a route of the mesh file through the crew counts too.

    Raises:
        TargetError: an actor on the way is invalid or unknown, or no holder may send to it.
    """
    counting = list(holders)
    for place, logical in enumerate(ahead):
        target = actual_actor(envelope, logical)
        if place > 0 and target not in mesh.actors and (not continued or _anyone_may_send_anywhere(mesh, counting)):
            return  # only the actor before it knows whether a deployment has added it by then
        check_target(mesh, target)
        is_given = _have_edge(mesh, counting, target, through=continued or place > 0)
        if not is_given and target not in names.ROUTABLE_CREW:
            raise _forbidden(mesh, counting, target)
        spec = mesh.actors[target]
        if not spec.continues:
            return
        if is_given and leads_on(spec):
            counting.append(target)


def starters(mesh: MeshTable, actor: str) -> tuple[str, ...]:
    """The actors whose edges count for a sender outside that starts at an actor: who may send to its queue starts there.

    x-checkpoint, x-resume and fan-in actors have no edges of their own.
    """
    return () if mesh.actors[actor].kind in _WITHOUT_EDGES else (actor,)


def leads_on(spec: Actor) -> bool:
    """Whether an actor leads on by edges of its own: one with code of users, a pause, and a wait with targets of its own."""
    if spec.kind in _WITHOUT_EDGES:
        return False
    return not spec.continues or spec.kind == "pause" or spec.can_send_to is not None


def _declares(mesh: MeshTable, sender: str, target: str) -> bool:
    """Whether the mesh file gives an edge from an actor to another one."""
    allowed = mesh.actors[sender].can_send_to
    return allowed is None or target in allowed or target == sender


def _have_edge(mesh: MeshTable, holders: Sequence[str], target: str, *, through: bool) -> bool:
    """Whether the mesh file gives an edge from one of the holders, or leads a route through the crew there."""
    for holder in holders:  # noqa: SIM110 - every hop comes here, and any() takes twice as long
        if _declares(mesh, holder, target) or (through and target in mesh.actors[holder].leads_to):
            return True
    return False


def _anyone_may_send_anywhere(mesh: MeshTable, holders: Sequence[str]) -> bool:
    return any(mesh.actors[holder].can_send_to is None for holder in holders)


def _forbidden(mesh: MeshTable, holders: Sequence[str], target: str) -> TargetError:
    if not holders:
        return TargetError(
            f"no actor of the mesh has sent the envelope, so the crew leads it nowhere; start at {target!r}, "
            "or at an actor that may send to it"
        )
    sender = holders[-1]
    return TargetError(f"actor {sender!r} may not send to {target!r}; {missing_key(mesh, sender, target)}")


def missing_key(mesh: MeshTable, sender: str, target: str) -> str:
    """The key of the mesh file that lets an actor send to another one, beside those that it may send to already."""
    targets = sorted({*(mesh.actors[sender].can_send_to or ()), target})
    return f"to allow it, write in the mesh file under actors.{sender}: can_send_to: [{', '.join(targets)}]"
