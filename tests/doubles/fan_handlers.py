"""Handlers of a mesh with a fan-out; the payload says what they do."""

from collections.abc import Iterator
from typing import Any

from asya import fan_out


def split(payload: dict[str, Any]) -> Iterator[Any]:
    """Fans out `items` over `to` (by default score), with the optional arguments `into` and `at`."""
    options = {key: payload[key] for key in ("into", "at") if key in payload}
    yield from fan_out(payload["items"], to=payload.get("to", ["score"]), **options)


def score(payload: Any) -> Any:
    """Returns ten times `n`, or does what the item asks for."""
    match payload:
        case {"fail": message}:
            raise ValueError(message)
        case {"nothing": True}:
            return None
        case {"twice": n}:
            return _each(n, n)
        case {"items": _}:
            return split(payload)
        case {"n": n}:
            return {"scored": n * 10}
    return payload


def post(payload: Any) -> Any:
    """Returns its payload."""
    return payload


def _each(*values: Any) -> Iterator[Any]:
    yield from values
