"""Decides who may start which task by `POST /api/v1/mesh` (`protocol §13`, start.operators and start.starts)."""

from asya.gateway.access import Caller
from asya.protocol import headers
from asya.protocol.api_errors import ApiError
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


def _for_operators(header: str) -> ApiError:
    return ApiError(403, "forbidden", f"only operators of the mesh may set {header}", f"headers.{header}")
