"""The calls of the gateway that the page may make; the console passes on no other method and no other path."""

from __future__ import annotations

import re
from urllib.parse import unquote

from asya.gateway import call_table

CALLS = tuple((call.method, call.path) for call in call_table.CALLS if call.in_console)
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
