"""Handlers of a mesh that fans out; what they do stands in their payload."""

from collections.abc import Iterator
from typing import Any

from asya import fan_out


def split(payload: dict[str, Any]) -> Iterator[Any]:
    """Hands out `items`, over `to` (score), into `into`, at `at`."""
    options = {key: payload[key] for key in ("into", "at") if key in payload}
    yield from fan_out(payload["items"], to=payload.get("to", ["score"]), **options)


def score(payload: Any) -> Any:
    """Ten times `n`; or what else the item asks for."""
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
    """Passes on what it gets."""
    return payload


def _each(*values: Any) -> Iterator[Any]:
    yield from values
