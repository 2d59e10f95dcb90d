"""Forms of the older generations (`protocol §14`): their routes, upgraded on receipt, and their payload of a failure.

Both routes are a list and an index: `{"actors": [...], "current": 0}` and `{"steps": [...], "current": 0}`.
"""

from typing import Literal

import msgspec
from msgspec import Raw

from asya.protocol.errors import ErrorInfo
from asya.protocol.route import Route
from asya.protocol.strict_json import encode_value

_RAN_OUT_OF_TIME = "Runtime timeout exceeded"

_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_list_decoder = msgspec.json.Decoder(tuple[str, ...])
_index_decoder = msgspec.json.Decoder(int)


def is_legacy(raw: Raw, shape: Literal["actors", "steps"]) -> bool:
    """Whether this JSON text is a route of that older shape, and not of the new one too."""
    members = _members(raw)
    return shape in members and not _is_new(members)


def upgraded_route(raw: Raw) -> Route | None:
    """The route of an older shape in the new one; None if it is of the new shape, or none at all.

    Raises:
        ValueError: naming the field: `current` negative, beyond the end or no integer; a list that is empty or holds no names.
    """
    members = _members(raw)
    shape = next((name for name in ("actors", "steps") if name in members), None)
    if shape is None or _is_new(members):
        return None
    try:
        actors = _list_decoder.decode(members[shape])
    except msgspec.MsgspecError as error:
        raise ValueError(f"route.{shape}: {error}") from None
    try:
        current = _index_decoder.decode(members["current"]) if "current" in members else 0
    except msgspec.MsgspecError as error:
        raise ValueError(f"route.current: {error}") from None
    if not actors:
        raise ValueError(f"route.{shape} is empty")
    if not 0 <= current <= len(actors):
        raise ValueError(f"route.current is {current}; route.{shape} has {len(actors)} entries")
    return Route(actors[:current], actors[current] if current < len(actors) else "", actors[current + 1 :])


def wrapped_payload(reason: str, error: ErrorInfo, payload: Raw) -> Raw:
    """What a failing actor with `failed_payload: wrapped` sends on: the error, and the payload as it was received.

    Args:
        reason: of the failure; a handler that ran out of time is told of in that generation's words.
    """
    about = {
        "error": _RAN_OUT_OF_TIME if reason == "Timeout" else error.message,
        "details": {"message": error.message, "type": error.type, "traceback": error.traceback},
    }
    return Raw(bytes(encode_value(about))[:-1] + b',"original_payload":' + bytes(payload) + b"}")


def _is_new(members: dict[str, Raw]) -> bool:
    return "curr" in members


def _members(raw: Raw) -> dict[str, Raw]:
    try:
        return _object_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}
