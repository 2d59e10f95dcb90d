"""Reads a single report from the path and the body of its request (`protocol §13`, `POST …/{id}/events`).

Only `status` is required (or `type: fly` with `data`). Defaults: the current time, the position in the route, generation 0.
The task statuses `running` and `pending` are accepted too: `running` registers the task, `pending` changes nothing.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Raw

from asya.protocol.events import PartialEvent, Report
from asya.protocol.route import Route
from asya.protocol.times import format_time
from asya.tasks.event_batch import BatchError, read_event

_object_decoder = msgspec.json.Decoder(dict[str, Raw])


class _RouteData(msgspec.Struct):
    route: Route | None = None


_data_decoder = msgspec.json.Decoder(_RouteData)


def read_single_event(
    body: bytes, task_id: str, now: datetime, upgrade: Callable[[Raw, str | None], Raw] = lambda data, _: data
) -> Report | None:
    """Read the report of a request; None for the status `pending`, which changes nothing.

    Args:
        body: the body of the request.
        task_id: the id in its path.
        now: the time of a report that names none.
        upgrade: brings the data of a report with a status from its legacy forms.

    Raises:
        BatchError: the report is malformed.
    """
    members = _members(body)
    if "type" not in members and "status" not in members:
        raise BatchError("type and status are missing; a report is {type: status, status, data} or {type: fly, data}")
    if "id" in members and _text(members["id"]) != task_id:
        raise BatchError("id differs from the id in the path; leave it out", "id")
    status = _text(members.get("status"))
    if status in ("running", "pending"):
        # `pending` is validated too, so that a malformed report is rejected.
        members["status"] = Raw(b'"registered"')
    if _text(members.get("type", Raw(b'"status"'))) == "status":
        members["data"] = upgrade(members.get("data", Raw(b"{}")), status)
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
        raise BatchError(f"the body is not valid JSON: {error}") from None


def _text(raw: Raw | None) -> str | None:
    """Decode a string; None for any other value."""
    try:
        return msgspec.json.decode(raw, type=str) if raw is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _position(members: dict[str, Raw]) -> int:
    """Derive the position from the reported route."""
    try:
        route = _data_decoder.decode(members.get("data", Raw(b"{}"))).route
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0  # read_event rejects the malformed data
    return route.position if route else 0
