"""Handlers as the older generations had them."""

from typing import Any


def flaky(payload: dict[str, Any]) -> dict[str, Any]:
    """Calls a service that is down until it is told that it is up again."""
    if not payload.get("up"):
        raise ConnectionError("the service is down")
    return payload


def divide(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """An array is a fan-out."""
    return [{"n": number} for number in range(payload["count"])]


def advance(envelope: dict[str, Any]) -> dict[str, Any]:
    """Gets the whole envelope and moves it on by itself."""
    envelope["payload"]["seen_by"] = envelope["route"]["actors"][envelope["route"]["current"]]
    envelope["route"]["current"] += 1
    return envelope
