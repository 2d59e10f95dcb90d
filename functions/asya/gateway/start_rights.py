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


def check_replay(stored: Envelope, place: str | None, caller: Caller, mesh: MeshTable, *, force: bool) -> None:
    """Check that a replay starts where a function of the mesh had the envelope.

    A sender outside writes the route, and the actors of the crew believe the gateway about where it leads. An operator may start
    the envelope elsewhere, if he says so.

    Args:
        stored: the envelope as it failed, or as a hop or a checkpoint has kept it.
        place: the actor at which the record of the task says that it is; it counts for an envelope whose status names none.
        force: whether the caller has said so.

    Raises:
        ApiError: 403 with the actor.
    """
    if force if caller.is_operator else mesh.gateway.starts is None:
        return
    actor = actual_actor(stored, stored.route.curr)
    status, spec = stored.status, mesh.actors.get(actor)
    was = (status.actor if status is not None else None) or place
    if was != actor:
        why = f"it was at {was!r}, and its route names {actor!r}" if was else f"nothing says that it was at {actor!r}"
    elif spec is not None and spec.continues and status is not None and status.reason == "RouteMismatch":
        why = f"{actor!r} has refused to lead it on"
    else:
        return
    remedy = "to start it there all the same, force it" if caller.is_operator else "an operator of the mesh may"
    raise ApiError(403, "forbidden", f"a replay would start at {actor!r}: {why}; {remedy}")


def _for_operators(header: str) -> ApiError:
    return ApiError(403, "forbidden", f"only operators of the mesh may set {header}", f"headers.{header}")
