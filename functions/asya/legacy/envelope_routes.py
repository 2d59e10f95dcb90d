"""Routes of legacy envelopes, upgraded on receipt (`protocol §14`).

A legacy route is a list and an index: `{"actors": [...], "current": 0}` or `{"steps": [...], "current": 0}`.
The codec calls this module, so it imports nothing of the library.
"""

from typing import Literal, NamedTuple

import msgspec
from msgspec import Raw

_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_list_decoder = msgspec.json.Decoder(tuple[str, ...])
_index_decoder = msgspec.json.Decoder(int)


class UpgradedRoute(NamedTuple):
    """The members of a route in its present form."""

    prev: tuple[str, ...]
    curr: str
    next: tuple[str, ...]


def is_legacy(raw: Raw, shape: Literal["actors", "steps"]) -> bool:
    """Whether this JSON text is a route of that legacy shape, and has no member of the present form."""
    members = _members(raw)
    return shape in members and not _is_present_form(members)


def upgraded_route(raw: Raw) -> UpgradedRoute | None:
    """Upgrade a legacy route; None for a route of the present form and for anything else.

    Raises:
        ValueError: naming the field, if `current` is negative, beyond the end or not an integer, or if the list is
            empty or holds something else than names.
    """
    members = _members(raw)
    shape = next((name for name in ("actors", "steps") if name in members), None)
    if shape is None or _is_present_form(members):
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
    return UpgradedRoute(actors[:current], actors[current] if current < len(actors) else "", actors[current + 1 :])


def _is_present_form(members: dict[str, Raw]) -> bool:
    return "curr" in members


def _members(raw: Raw) -> dict[str, Raw]:
    try:
        return _object_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}
