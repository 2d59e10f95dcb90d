"""Dismissals of failures: the request and its answer (`protocol §13.dismiss`)."""

import msgspec
from msgspec.structs import replace

from asya.protocol.api_errors import ApiError
from asya.protocol.request_bodies import read_body
from asya.protocol.task import Resolution

REASON_LIMIT = 1024
"""Characters of a reason."""


class DismissRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A dismissal, or the end of one.

    Attributes:
        reason: why nothing has to be done about the failure.
        undo: open the failure again.
    """

    reason: str = ""
    undo: bool = False


class Dismissed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response: what became of the task; no `resolution` after an undo."""

    id: str
    resolution: Resolution | None = None


def read_dismissal(body: bytes) -> DismissRequest:
    """Read the request.

    Raises:
        ApiError: 400 with the field at fault.
    """
    wish = read_body(body, DismissRequest)
    reason = wish.reason.strip()
    if wish.undo and reason:
        raise ApiError(400, "invalid_field", "undo takes no reason", "reason")
    if not wish.undo and not 1 <= len(reason) <= REASON_LIMIT:
        problem = f"reason must say in 1 to {REASON_LIMIT:,} characters why nothing has to be done about the failure"
        raise ApiError(400, "invalid_field", problem, "reason")
    return replace(wish, reason=reason)
