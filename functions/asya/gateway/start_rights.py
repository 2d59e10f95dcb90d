"""Decides who may start or replay which task (`protocol §13.start.operators`, `§13.start.starts`, `§12.replay.place`)."""

from asya.function.targets import actual_actor
from asya.gateway.access import Caller
from asya.protocol import headers
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.tasks.starts.submission import Submission, is_stealth


def check_start(submission: Submission, caller: Caller, mesh: MeshTable) -> None:
    """Check that a caller may start this task; operators may start every one.

    Raises:
        ApiError: 403 with the field that only operators may set, or the actor that only they may start.
    """
    if caller.is_operator:
        return
    if headers.ROUTE_OVERRIDE in submission.headers:
        raise _for_operators(headers.ROUTE_OVERRIDE)
    if is_stealth(submission):
        raise _for_operators(headers.MESH_STATUS)
    starts = mesh.gateway.starts
    if starts is not None and submission.actor not in starts:
        others = f"start at {', '.join(starts)}" if starts else "call a tool"
        problem = f"only operators of the mesh may start a task at {submission.actor!r}; {others}"
        raise ApiError(403, "forbidden", problem, "actor")


def check_replay(stored: Envelope, caller: Caller, mesh: MeshTable) -> None:
    """Check that a replay starts where a function of the mesh had the envelope, if its caller may not start everywhere.

    A sender outside writes the route, and the actors of the crew believe the gateway about where it leads.

    Args:
        stored: the envelope as it failed, or as a hop or a checkpoint has kept it.

    Raises:
        ApiError: 403 with the actor.
    """
    if caller.is_operator or mesh.gateway.starts is None or stored.status is None:
        return
    actor, place = actual_actor(stored, stored.route.curr), stored.status.actor
    spec = mesh.actors.get(actor)
    if actor != place:
        why = f"the envelope came to {place!r}, and its route names {actor!r}"
    elif spec is not None and spec.continues and stored.status.reason == "RouteMismatch":
        why = f"{actor!r} has refused to lead it on"
    else:
        return
    raise ApiError(403, "forbidden", f"only operators of the mesh may replay it at {actor!r}: {why}")


def _for_operators(header: str) -> ApiError:
    return ApiError(403, "forbidden", f"only operators of the mesh may set {header}", f"headers.{header}")
