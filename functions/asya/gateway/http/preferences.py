"""What a client prefers, in the header `Prefer` (RFC 7240)."""

import re

from asya.gateway.http.router import Request

_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])", re.IGNORECASE)


def preferred_wait(request: Request) -> float | None:
    """Return the seconds of `Prefer: wait=10`; None if the client has no preference."""
    match = _WAIT.search(request.headers.get("prefer", ""))
    return float(match[1]) if match else None
