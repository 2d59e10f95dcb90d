"""The refusals of a replay and of a redrive for a task that is settled already (`protocol §12.replay.again`)."""

import shlex

from asya.protocol.api_errors import ApiError, ErrorCode
from asya.protocol.task import ReplayLink, Resolution

SETTLED: frozenset[str] = frozenset({"replayed", "dismissed", "overtaken"})
"""The codes of the refusals."""

_CODES: dict[str, ErrorCode] = {
    "replayed": "replayed",
    "redriven": "replayed",
    "dismissed": "dismissed",
    "overtaken": "overtaken",
}
_STATES = {
    "pending": "is pending",
    "running": "runs",
    "paused": "is paused",
    "succeeded": "has succeeded",
    "failed": "has failed",
    "canceled": "was canceled",
}


def settled_error(task_id: str, resolution: Resolution) -> ApiError:
    """The error 409 of a task that is settled; it names what settled it, and what to type."""
    other = resolution.task or ""
    state = _STATES[resolution.status or "pending"]
    match resolution.how:
        case "dismissed":
            what = f"{task_id!r} was dismissed by {resolution.by}: {resolution.reason}"
        case "overtaken":
            what = f"{task_id!r} was overtaken by {other!r}, which {state}"
        case _:
            what = f"{task_id!r} was replayed as {other!r}, which {state}"
    show = f"`asya status {shlex.quote(other)}` shows it, and " if other else ""
    return ApiError(409, _CODES[resolution.how], f"{what}; {show}`--force` runs {task_id!r} once more")


def other_request_error(task_id: str, link: ReplayLink) -> ApiError:
    """The error 409 of a task whose replay from another place was begun, and perhaps not sent."""
    problem = f"{task_id!r} was replayed as {link.id!r}, from another place ({link.request}), and perhaps not sent"
    return ApiError(409, "replayed", f"{problem}; the same call again sends it, and `--force` starts another one")


def in_progress_error(task_id: str, link: ReplayLink) -> ApiError:
    """The error 409 of a task whose replay another call is about to send."""
    problem = f"another call replays {task_id!r} as {link.id!r} at this moment; repeat this one later"
    return ApiError(409, "idempotency_in_progress", problem, retry_after=5)
