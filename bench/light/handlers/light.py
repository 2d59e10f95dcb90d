"""A handler that does nothing."""

from typing import Any


def same(payload: Any) -> Any:
    """Return the payload."""
    return payload
