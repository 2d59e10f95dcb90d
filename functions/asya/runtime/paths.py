"""The paths of the ABI (`protocol §7`): `.route.next[:0]`, `.headers["trace id"]`, `.status.error`."""

import json
import re
from dataclasses import dataclass
from typing import Any

# No structs of msgspec here: jobs speak the ABI too, and have the standard library only.


@dataclass(frozen=True, slots=True)
class Key:
    """`.name` or `["any name"]`."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`[3]`, `[-1]`."""

    index: int


@dataclass(frozen=True, slots=True)
class Slice:
    """`[a:b]`, either side may be missing."""

    start: int | None
    stop: int | None


Segment = Key | Index | Slice


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path; its text is kept for messages."""

    text: str
    segments: tuple[Segment, ...]

    def __getitem__(self, position: int) -> Segment:
        return self.segments[position]

    def __str__(self) -> str:
        return self.text

    @property
    def leading_names(self) -> tuple[str, ...]:
        """The keys it begins with, up to the first index or slice."""
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
    """Read a path.

    Raises:
        ValueError: saying where it stops being one.
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
        except ValueError as error:  # an unknown escape, an index of thousands of digits
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
    return Slice(int(start) if start else None, int(stop) if stop else None)
