"""Handlers in the legacy forms."""

from typing import Any


def flaky(payload: dict[str, Any]) -> dict[str, Any]:
    """Fails until the payload says that the service is up."""
    if not payload.get("up"):
        raise ConnectionError("the service is down")
    return payload


def divide(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns an array, which fans out."""
    return [{"n": number} for number in range(payload["count"])]


def advance(envelope: dict[str, Any]) -> dict[str, Any]:
    """Receives the whole envelope and advances its route."""
    envelope["payload"]["seen_by"] = envelope["route"]["actors"][envelope["route"]["current"]]
    envelope["route"]["current"] += 1
    return envelope
