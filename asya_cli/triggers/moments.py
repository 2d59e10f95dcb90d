"""Shows slots in the zone of their schedule."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from asya.protocol.times import parse_time


def local_time(at: str, timezone: str | None) -> str:
    """Return a time in a zone, with its offset: `2026-11-25 02:00 +01`.

    Args:
        at: The time (RFC 3339).
        timezone: The zone of the schedule; None for UTC.
    """
    local = parse_time(at).astimezone(ZoneInfo(timezone or "UTC"))
    offset = local.strftime("%z")
    return f"{local:%Y-%m-%d %H:%M} {offset[:3]}{offset[3:] if offset[3:] != '00' else ''}"
