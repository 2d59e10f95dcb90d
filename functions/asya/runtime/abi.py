"""The ABI: the commands that a generator handler yields as tuples, and their paths (`protocol §7`).

`x = yield ("GET", path)` · `yield ("SET", path, value)` · `yield ("DEL", path)` · `yield ("FLY", {...})`
"""

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asya.protocol import headers as header_names


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


READABLE = ("id", "parent_id", "route", "headers", "status")
MANAGED_STATUS_KEYS = frozenset({"deadline_at", "created_at", "attempt", "max_attempts"})


@dataclass(slots=True)
class EnvelopeView:
    """An envelope in plain values, as one handler call reads and changes it.

    Attributes:
        publish_partial: takes the values of FLY commands; None drops them.
    """

    id: str
    parent_id: str
    prev: tuple[str, ...]
    curr: str
    next: list[str]
    headers: dict[str, Any]
    status: dict[str, Any]
    publish_partial: Callable[[Mapping[str, Any]], None] | None = None
    next_changed: bool = field(default=False)


def execute(view: EnvelopeView, command: tuple[Any, ...]) -> Any:
    """Execute one command and return the value of the handler's `yield`.

    Raises:
        RuntimeError: the verb is unknown.
        ValueError: the command has a wrong number of parts, or its path is malformed.
        KeyError, IndexError: the path does not exist.
        PermissionError: the path may not be read or written.
    """
    verb = command[0] if command else None
    match verb:
        case "GET":
            _check_arity(command, 2, '("GET", path)')
            return copy.deepcopy(_get(view, parse_path(command[1])))
        case "SET":
            _check_arity(command, 3, '("SET", path, value)')
            _set(view, parse_path(command[1]), copy.deepcopy(command[2]))
        case "DEL":
            _check_arity(command, 2, '("DEL", path)')
            _delete(view, parse_path(command[1]))
        case "FLY":
            _check_arity(command, 2, '("FLY", {…})')
            if not isinstance(command[1], dict):
                raise ValueError(f"FLY takes an object, not a {type(command[1]).__name__}")
            if view.publish_partial is not None:
                view.publish_partial(copy.deepcopy(command[1]))
        case _:
            raise RuntimeError(
                f"unknown command {verb!r}: a yielded tuple is a command (GET, SET, DEL, FLY); yield a list for a payload"
            )
    return None


def _check_arity(command: tuple[Any, ...], parts: int, form: str) -> None:
    if len(command) != parts:
        raise ValueError(f"{command[0]} has {len(command)} parts; its form is {form}")


def _get(view: EnvelopeView, path: Path) -> Any:
    root = {
        "id": view.id,
        "parent_id": view.parent_id,
        "route": {"prev": list(view.prev), "curr": view.curr, "next": list(view.next)},
        "headers": view.headers,
        "status": view.status,
    }
    if not isinstance(path.segments[0], Key) or path.segments[0].name not in READABLE:
        raise PermissionError(f"{path} may not be read; readable are {', '.join('.' + name for name in READABLE)}")
    return _walk(root, path.segments, path)


def _set(view: EnvelopeView, path: Path, value: Any) -> None:
    names = path.leading_names
    if names[:2] == ("route", "next"):
        _set_next(view, path, value)
    elif names[:1] == ("headers",):
        _set_object(view.headers, path, value, header_names.is_read_only)
    elif names[:1] == ("status",):
        _set_object(view.status, path, value, MANAGED_STATUS_KEYS.__contains__)
    else:
        raise PermissionError(f"{path} may not be written; writable are .route.next, .headers and .status")


def _delete(view: EnvelopeView, path: Path) -> None:
    names = path.leading_names
    if names == ("route", "next") and len(path.segments) == 2:
        view.next, view.next_changed = [], True
    elif names[:2] == ("route", "next"):
        changed = list(view.next)
        _check_next_entry(path)
        _remove(changed, path.segments[2], path)
        view.next, view.next_changed = changed, True
    elif names[:1] == ("headers",):
        _delete_in(view.headers, path, header_names.is_read_only)
    elif names[:1] == ("status",):
        _delete_in(view.status, path, MANAGED_STATUS_KEYS.__contains__)
    else:
        raise PermissionError(f"{path} may not be deleted; writable are .route.next, .headers and .status")


def _set_next(view: EnvelopeView, path: Path, value: Any) -> None:
    changed: Any = list(view.next)
    segments = path.segments[2:]
    _check_next_entry(path)
    if segments:
        _assign(changed, segments[0], value, path)
    else:
        changed = value
    if not isinstance(changed, list | tuple) or not all(isinstance(name, str) for name in changed):
        raise ValueError(f"{path}: .route.next must be a list of actor names")
    view.next, view.next_changed = list(changed), True


def _check_next_entry(path: Path) -> None:
    if len(path.segments) > len((".route", ".next", "[index]")):
        raise ValueError(f"{path}: the entries of .route.next are actor names without parts")


def _set_object(root: dict[str, Any], path: Path, value: Any, is_managed: Callable[[str], bool]) -> None:
    """Set an object or a part of it. A SET of the whole object keeps the managed parts."""
    segments = path.segments[1:]
    if not segments:
        if not isinstance(value, dict):
            raise ValueError(f"{path} is an object; it cannot be set to a {type(value).__name__}")
        managed = {name: item for name, item in root.items() if is_managed(name)}
        root.clear()
        root.update({name: item for name, item in value.items() if not is_managed(name)} | managed)
        return
    _check_writable(segments[0], path, is_managed)
    existing = _existing(root, segments, path)
    missing = segments[existing + 1 :]
    if not all(isinstance(segment, Key) for segment in missing):
        raise KeyError(f"{path}: only objects are created, and {segments[existing]} is missing")
    for segment in reversed(missing):
        value = {segment.name: value} if isinstance(segment, Key) else value
    _assign(_walk(root, segments[:existing], path), segments[existing], value, path)


def _existing(root: Any, segments: tuple[Segment, ...], path: Path) -> int:
    """The number of leading segments that exist; the next one is missing or null, or it is the last one."""
    value = root
    for number, segment in enumerate(segments[:-1]):
        if isinstance(segment, Key) and isinstance(value, dict) and value.get(segment.name) is None:
            return number
        value = _walk(value, (segment,), path)
    return len(segments) - 1


def _delete_in(root: dict[str, Any], path: Path, is_managed: Callable[[str], bool]) -> None:
    segments = path.segments[1:]
    if not segments:
        for name in [name for name in root if not is_managed(name)]:
            del root[name]
        return
    _check_writable(segments[0], path, is_managed)
    _remove(_walk(root, segments[:-1], path), segments[-1], path)


def _check_writable(segment: Segment, path: Path, is_managed: Callable[[str], bool]) -> None:
    if isinstance(segment, Key) and is_managed(segment.name):
        raise PermissionError(f"{path} is managed by the mesh; a handler may read it only")


def _walk(value: Any, segments: tuple[Segment, ...], path: Path) -> Any:
    for segment in segments:
        if isinstance(segment, IndexRange):
            raise ValueError(f"{path}: a slice may only be the last part of a SET")
        if isinstance(segment, Key):
            if not isinstance(value, dict) or segment.name not in value:
                raise KeyError(f"{path}: there is no {segment.name!r}")
            value = value[segment.name]
        else:
            _check_list(value, path)
            if not -len(value) <= segment.at < len(value):
                raise IndexError(f"{path}: index {segment.at} of {len(value)} entries")
            value = value[segment.at]
    return value


def _assign(container: Any, segment: Segment, value: Any, path: Path) -> None:
    if isinstance(segment, Key):
        if not isinstance(container, dict):
            raise KeyError(f"{path}: a {type(container).__name__} has no keys")
        container[segment.name] = value
    elif isinstance(segment, IndexRange):
        _check_list(container, path)
        if not isinstance(value, list | tuple):
            raise ValueError(f"{path}: a slice takes a list")
        container[segment.start : segment.stop] = list(value)
    else:
        _check_list(container, path)
        if not -len(container) <= segment.at < len(container):
            raise IndexError(f"{path}: index {segment.at} of {len(container)} entries")
        container[segment.at] = value


def _remove(container: Any, segment: Segment, path: Path) -> None:
    if isinstance(segment, IndexRange):
        raise ValueError(f"{path}: a slice may only be the last part of a SET")
    _walk(container, (segment,), path)
    del container[segment.name if isinstance(segment, Key) else segment.at]


def _check_list(value: Any, path: Path) -> None:
    if not isinstance(value, list):
        raise KeyError(f"{path}: a {type(value).__name__} has no indices")
