"""Two handlers with a mistake in each, until a file in the mesh's data says that it is mended."""

from collections.abc import Iterator
from typing import Any

from asya import data


def is_mended(name: str) -> bool:
    """Whether somebody has seen to it."""
    try:
        return data.size(f"flags/{name}") > 0
    except FileNotFoundError:
        return False


def courier(payload: dict[str, Any]) -> Iterator[Any]:
    """Goes where it is not let in."""
    if not is_mended("courier"):
        yield ("SET", ".route.next[:0]", ["closed"])
    yield {**payload, "carried": True}


def clerk(payload: dict[str, Any]) -> dict[str, Any]:
    """Knows of no order."""
    if not is_mended("clerk"):
        raise ValueError("no such order: " + payload["order"])
    return {**payload, "booked": True}


def closed(payload: Any) -> Any:
    """Where nobody gets."""
    return payload
