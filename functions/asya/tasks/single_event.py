"""One report in a request of its own, as the path and the body say it together (`protocol §13`, `POST …/{id}/events`).

Only `status` (or `type: fly` and `data`) has to be there; what says when and where in the task's life it belongs is filled in:
now, at the hop that its route shows, first generation. Two of the task's own statuses are taken too, beside the events':
`running` says no more than that it runs, `pending` nothing at all.
"""

from datetime import datetime

import msgspec
from msgspec import Raw

from asya.protocol.events import PartialEvent, Report
from asya.protocol.route import Route
from asya.protocol.times import format_time
from asya.tasks.event_batch import BatchError, read_event

_object_decoder = msgspec.json.Decoder(dict[str, Raw])


class _OnlyRoute(msgspec.Struct):
    route: Route | None = None


_data_decoder = msgspec.json.Decoder(_OnlyRoute)


def read_single_event(body: bytes, task_id: str, now: datetime) -> Report | None:
    """The report of a request; None where it says no more than that the task is there.

    Raises:
        BatchError: saying what is wrong with it, and where.
    """
    members = _members(body)
    if "type" not in members and "status" not in members:
        raise BatchError("type and status are missing; a report is {type: status, status, data} or {type: fly, data}")
    if "id" in members and _text(members["id"]) != task_id:
        raise BatchError("id is not that of the path", "id")
    status = _text(members.get("status"))
    if status == "running":
        members["status"] = Raw(b'"registered"')
    elif status == "pending":
        # Read as what it stands for, so that nothing malformed passes.
        members["status"] = Raw(b'"registered"')
    members["id"] = Raw(msgspec.json.encode(task_id))
    members.setdefault("at", Raw(msgspec.json.encode(format_time(now))))
    members.setdefault("position", Raw(b"%d" % _position(members)))
    event = read_event(Raw(msgspec.json.encode(members)))
    if isinstance(event, PartialEvent) or status != "pending":
        return event
    return None


def _members(body: bytes) -> dict[str, Raw]:
    try:
        return _object_decoder.decode(body)
    except msgspec.ValidationError:
        raise BatchError("the body must be a JSON object") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the body is no JSON: {error}") from None


def _text(raw: Raw | None) -> str | None:
    """A text; None for anything else."""
    try:
        return msgspec.json.decode(raw, type=str) if raw is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _position(members: dict[str, Raw]) -> int:
    """Where the route says that the task is."""
    try:
        route = _data_decoder.decode(members.get("data", Raw(b"{}"))).route
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0  # it will be refused for what it is
    return route.position if route else 0
