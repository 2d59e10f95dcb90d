"""The calls of the gateway that the page may make; the console passes on no other method and no other path."""

from __future__ import annotations

import re
from urllib.parse import unquote

_TASK = "/api/v1/mesh/{id}"
_OPERATIONS = "/api/v1/operations"

CALLS = (
    ("GET", "/api/v1/mesh"),
    ("GET", _TASK),
    ("GET", f"{_TASK}/children"),
    ("GET", f"{_TASK}/set"),
    ("GET", f"{_TASK}/timeline"),
    ("GET", f"{_TASK}/events"),
    ("GET", f"{_TASK}/payloads"),
    ("GET", f"{_TASK}/payloads/{{hop}}"),
    ("DELETE", _TASK),
    ("POST", f"{_TASK}/resume"),
    ("POST", f"{_TASK}/replay"),
    ("POST", f"{_TASK}/dismiss"),
    ("GET", f"{_OPERATIONS}/failures"),
    ("GET", f"{_OPERATIONS}/mesh"),
    ("GET", f"{_OPERATIONS}/actors/{{actor}}"),
    ("GET", f"{_OPERATIONS}/actors/{{actor}}/logs"),
    ("GET", f"{_OPERATIONS}/dead-letters"),
    ("GET", f"{_OPERATIONS}/logs/{{id}}"),
    ("GET", f"{_OPERATIONS}/runs"),
    ("GET", f"{_OPERATIONS}/runs/{{run_id}}"),
    ("GET", f"{_OPERATIONS}/runs/{{run_id}}/logs"),
)
"""Method and path of each call. A name in braces stands for one segment, percent-encoded."""

QUERY_LIMIT = 8 * 1024
"""Bytes of a query that is passed on."""

_SEGMENT = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+"


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile("/".join(_SEGMENT if part.startswith("{") else re.escape(part) for part in path.split("/")))


_PATTERNS = tuple((method, _pattern(path)) for method, path in CALLS)


def is_allowed(method: str, path: str) -> bool:
    """Return whether the page may make a call.

    Args:
        method: The method of the request.
        path: The path as it was sent, percent-encoded. A segment `..`, however it is encoded, is refused.
    """
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        return False
    return any(method == allowed and pattern.fullmatch(path) for allowed, pattern in _PATTERNS)
