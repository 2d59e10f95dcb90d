"""Handlers of orders."""

import os
from collections.abc import Iterator
from typing import Any

from asya import data


def is_fixed(name: str) -> bool:
    """Returns whether the flag file of a handler exists."""
    try:
        return data.size(f"flags/{name}") > 0
    except FileNotFoundError:
        return False


def courier(payload: dict[str, Any]) -> Iterator[Any]:
    """Carries an order on, or to the actor `to`. The first order kills the process until it is fixed."""
    if payload["order"] == "order-1" and not is_fixed("courier"):
        os._exit(3)
    if "to" in payload:
        yield ("SET", ".route.next[:0]", [payload["to"]])
    yield {**payload, "carried": True}


def clerk(payload: dict[str, Any]) -> dict[str, Any]:
    """Fails for every order until it is fixed."""
    if not is_fixed("clerk"):
        raise ValueError("no such order: " + payload["order"])
    return {**payload, "booked": True}


def closed(payload: Any) -> Any:
    """Never runs: no actor may send to it."""
    return payload
