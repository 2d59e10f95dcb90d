"""How a stored envelope is written: indented for people, within what its writer can hold (`protocol §11.keys.body`)."""

import re
from itertools import accumulate

import msgspec

INDENTED_BYTES = 1024 * 1024
"""The largest envelope that is indented."""
GROWTH = 8
"""An indented envelope has at most so many times its bytes: a list that lies deep would have a thousand times as many."""

_TEXTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARKS = b"[]{},"
_NO_MARKS = bytes(code for code in range(256) if code not in _MARKS)
_STEPS = [(code in b"[{") - (code in b"]}") for code in range(256)]
_SPACES = 2


def indented(body: bytes) -> bytes:
    """The JSON of an envelope as an object holds it: indented by two, or as it is if that would take too much."""
    if len(body) > INDENTED_BYTES or len(body) + _added(body) > GROWTH * len(body):
        return body
    return msgspec.json.format(body, indent=_SPACES)


def _added(body: bytes) -> int:
    """About how many bytes an indentation adds: behind each bracket and comma a line break, and spaces by the depth there."""
    marks = _TEXTS.sub(b"", body).translate(None, _NO_MARKS)
    return len(marks) + _SPACES * sum(accumulate(_STEPS[mark] for mark in marks))
