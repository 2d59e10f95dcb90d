"""Upgrades the data of a single report from its legacy forms (`protocol §14.api.reports`).

Legacy sidecars write the route as `prev`, `curr` and `next` beside the other fields, or leave it out, and an error as text.
"""

from collections.abc import Callable

import msgspec
from msgspec import Raw

from asya.protocol.errors import ErrorInfo
from asya.protocol.events import PROGRESS_STATUSES
from asya.protocol.route import Route

_FLAT = ("prev", "curr", "next")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_text_decoder = msgspec.json.Decoder(str)


class _TextError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error without a type."""

    message: str


_error_decoder = msgspec.json.Decoder(str | _TextError)


def upgrade_data(data: Raw, status: str | None, route: Callable[[], Route | None]) -> Raw:
    """Return the data of a status report with its route and its error as the protocol has them.

    What is of no legacy form, or malformed, stays as it is, so that the reader of reports refuses it by its own name.

    Args:
        data: the data of the report.
        status: its status.
        route: reads the route of the task, which a progress report without a route is about.
    """
    try:
        members = _object_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return data
    given = dict(members)
    if "route" not in members and all(name in members for name in _FLAT):
        members["route"] = _encode({name: members[name] for name in _FLAT})
        members.setdefault("actor", members["curr"])
    if status in PROGRESS_STATUSES and "route" not in members:
        found = _about(route(), _text(members.get("actor")))
        if found is not None:
            members["route"] = _encode(found)
            members.setdefault("actor", _encode(found.curr))
    if (error := _error(members.get("error"))) is not None:
        members["error"] = error
    return data if members == given else _encode(members)


def _about(route: Route | None, actor: str | None) -> Route | None:
    """The route at the hop of an actor that it has once, else at the hop of the task; None without any hop."""
    if route is None:
        return None
    actors = (*route.prev, *((route.curr,) if route.curr else ()), *route.next)
    if not actors:
        return None
    at = actors.index(actor) if actor is not None and actors.count(actor) == 1 else min(route.position, len(actors) - 1)
    return Route(actors[:at], actors[at], actors[at + 1 :])


def _error(raw: Raw | None) -> Raw | None:
    """The error of a report that has its text alone; None for any other."""
    if raw is None:
        return None
    try:
        error = _error_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return _encode(ErrorInfo(type="Error", message=error if isinstance(error, str) else error.message))


def _text(raw: Raw | None) -> str | None:
    try:
        return _text_decoder.decode(raw) if raw is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _encode(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
