"""The lightest of handlers."""

from typing import Any


def same(payload: Any) -> Any:
    """What it was given."""
    return payload
