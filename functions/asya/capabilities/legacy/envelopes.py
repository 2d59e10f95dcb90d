"""Reads envelopes of this and of older generations, whose routes are upgraded on receipt (`protocol §14`).

A legacy route is a list and an index: `{"actors": [...], "current": 0}` or `{"steps": [...], "current": 0}`.
"""

import msgspec
from msgspec import Raw

from asya.protocol import ids
from asya.protocol.codec import Members, ParseError, decode, id_of
from asya.protocol.envelope import Envelope, Route

_SHAPES = ("actors", "steps")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_list_decoder = msgspec.json.Decoder(tuple[str, ...])
_index_decoder = msgspec.json.Decoder(int)


def read_envelope(body: bytes, *, message_id: str = "") -> Envelope:
    """Decode the body of a received message, of whatever generation.

    Args:
        message_id: The SQS message id. An envelope with a route of `steps` may lack an id; it gets one derived from this.

    Raises:
        ParseError: The message is not a valid envelope; the error names the field.
    """
    return decode(body, _upgraded, message_id=message_id)


def _upgraded(message_id: str, members: Members) -> Members:
    """Return the members of a message with the route and the id in their present form.

    Raises:
        ParseError: The id is unusable, or the legacy route is malformed.
    """
    route = _members(members["route"]) if "route" in members else {}
    shape = next((name for name in _SHAPES if name in route), None)
    if shape is None or "curr" in route:
        return members
    envelope_id = _id_of(members, shape, message_id)
    try:
        upgraded = _upgraded_route(route, shape)
    except ValueError as error:
        raise ParseError(str(error), envelope_id) from None
    return {**members, "id": _encode(envelope_id), "route": _encode(upgraded)}


def _id_of(members: Members, shape: str, message_id: str) -> str:
    if shape != "steps" or "id" in members:
        return id_of(members)
    return id_of(members, "job_id") if "job_id" in members else ids.id_of_message(message_id)


def _upgraded_route(members: Members, shape: str) -> Route:
    """Return a legacy route in its present form.

    Raises:
        ValueError: `current` is negative, beyond the end or not an integer, or the list is empty or holds something else
            than names; the text names the field.
    """
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


def _members(raw: Raw) -> Members:
    try:
        return _object_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _encode(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
