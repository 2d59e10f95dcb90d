"""Handlers that fan out, and that process the items."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from paths import note
from shop import is_fixed

from asya import fan_out


async def split(payload: dict[str, Any]) -> AsyncIterator[Any]:
    """Fans out `items`."""
    options = {key: payload[key] for key in ("into", "at") if key in payload}
    for frames in fan_out(payload["items"], to=["score"], **options):
        yield frames


class NotReadyError(Exception):
    """The flag file that an item waits for does not exist yet; the policy of score tries again."""


def score(item: Any) -> Any:
    """Multiplies `n` by ten, fails, waits or fails until a flag file exists, or fans out again, as the item says."""
    match item:
        case {"after": flag} if not is_fixed(flag):
            raise NotReadyError(flag)
        case {"until": flag} if not is_fixed(flag):
            raise ValueError(f"{flag} is not fixed")
        case {"fail": message}:
            raise ValueError(message)
        case {"items": items}:
            return fan_out(items, to=["score"], at=item.get("at", "x-fan-in"))
        case {"n": n}:
            return {"scored": n * 10, "text": item.get("text", "")}
    return item


def publish(payload: Any) -> Iterator[Any]:
    """Ends the route: writes a note and returns the payload."""
    note((yield ("GET", ".id")), "published")
    yield payload
