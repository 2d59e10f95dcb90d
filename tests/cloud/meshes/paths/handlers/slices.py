"""Handlers that fan out, or do with an item what stands in it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from paths import note

from asya import fan_out


async def split(payload: dict[str, Any]) -> AsyncIterator[Any]:
    """Hands out `items`."""
    options = {key: payload[key] for key in ("into", "at") if key in payload}
    for frames in fan_out(payload["items"], to=["score"], **options):
        yield frames


def score(item: Any) -> Any:
    """Ten times `n`, or whatever the item asks for; an item with items is a set of its own."""
    match item:
        case {"fail": message}:
            raise ValueError(message)
        case {"items": items}:
            return fan_out(items, to=["score"], at=item.get("at", "x-fan-in"))
        case {"n": n}:
            return {"scored": n * 10, "text": item.get("text", "")}
    return item


def publish(payload: Any) -> Iterator[Any]:
    """The end of the route: what came is the result, and a note of it stays."""
    note((yield ("GET", ".id")), "published")
    yield payload
