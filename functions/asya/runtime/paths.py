"""Paths of the ABI, such as `.route.next[:0]` and `.headers["trace id"]` (`protocol §7`)."""

import json
import re
from typing import Any, NamedTuple

# Standard library only, without structs of msgspec, because heavy jobs use the ABI too. Every function imports this module, and a
# data class takes six times as long to make as a named tuple.


class Key(NamedTuple):
    """A key: `.name` or `["any name"]`."""

    name: str


class Index(NamedTuple):
    """An index into a list: `[3]` or `[-1]`."""

    at: int


class IndexRange(NamedTuple):
    """A range of a list: `[start:stop]`; either side may be missing."""

    start: int | None
    stop: int | None


Segment = Key | Index | IndexRange


class Path(NamedTuple):
    """A parsed path, with its text for error messages."""

    text: str
    segments: tuple[Segment, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def leading_names(self) -> tuple[str, ...]:
        """The leading keys, up to the first index or range."""
        names: list[str] = []
        for segment in self.segments:
            if not isinstance(segment, Key):
                break
            names.append(segment.name)
        return tuple(names)


_SEGMENT = re.compile(
    r"""
      \.(?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]
    | \[(?P<index>-?\d+)\]
    | \[(?P<start>-?\d+)?:(?P<stop>-?\d+)?\]
    """,
    re.VERBOSE,
)


def parse_path(text: Any) -> Path:
    """Parse a path.

    Raises:
        ValueError: the path is malformed; the error shows where.
    """
    if not isinstance(text, str) or not text.startswith("."):
        raise ValueError(f"a path is a text that starts with '.', such as .route.next; got {text!r}")
    segments: list[Segment] = []
    position = 0
    while position < len(text):
        match = _SEGMENT.match(text, position)
        if match is None:
            raise ValueError(f"malformed path {text!r} at {text[position:]!r}")
        try:
            segments.append(_segment(match))
        except ValueError as error:  # an unknown escape, or an index with thousands of digits
            raise ValueError(f"malformed path {text!r} at {match.group()!r}: {error}") from None
        position = match.end()
    return Path(text, tuple(segments))


def _segment(match: re.Match[str]) -> Segment:
    if match["name"] is not None:
        return Key(match["name"])
    if match["quoted"] is not None:
        return Key(json.loads(match["quoted"]))
    if match["index"] is not None:
        return Index(int(match["index"]))
    start, stop = match["start"], match["stop"]
    return IndexRange(int(start) if start else None, int(stop) if stop else None)
