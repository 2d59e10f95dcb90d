"""The time, as the mesh writes it."""

from datetime import UTC, datetime


def now_text() -> str:
    """Now, RFC 3339 in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
