"""Parses the YAML of a mesh file into plain values, with the line of every key.

Plain scalars follow the core schema of YAML 1.2: `no`, `on`, dates and `1:30` are text. A scalar that is no text keeps its
written form beside its value, for the keys that take text.
"""

import copy
import math
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from asya.protocol.text_encoding import decode_text
from asya_infra.mesh_file.problems import MeshFileError, Problem

Location = tuple[str | int, ...]

# Aliases can expand a small file to a huge or infinite one.
_NESTING_LIMIT = 60
_VALUES_LIMIT = 100_000
# Escapes such as `"\ud800"` make text that no encoding has.
_SURROGATE = re.compile("[\ud800-\udfff]")

_MERGE = "tag:yaml.org,2002:merge"
_INT = r"[-+]?(0|[1-9][0-9]*)"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2's resolution of plain scalars."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (PyYAML's own form)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", _INT, "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
# An empty value has no first character; PyYAML looks it up under the empty string.
_Loader.yaml_implicit_resolvers.setdefault("", []).append(("tag:yaml.org,2002:null", re.compile("^$")))


class Source:
    """The values of one mesh file, the line of each, and the written form of those that are no text."""

    def __init__(
        self, file: str, values: dict[str, Any], lines: dict[Location, int], written: dict[Location, str]
    ) -> None:
        self.file = file
        self.values = values
        self._lines = lines
        self._written = written
        self._inherited: dict[Location, Location] = {}

    def problem(self, location: Location, message: str) -> Problem:
        """Create a problem at this key, or at the nearest enclosing key in the file."""
        origin = self._origin(location)
        return Problem(self.file, self.line(origin), format_location(origin), message)

    def line(self, location: Location) -> int:
        """Return the line of a key, counted from 1."""
        for end in range(len(location), 0, -1):
            if location[:end] in self._lines:
                return self._lines[location[:end]]
        return 1

    def written(self, location: Location) -> str | None:
        """Return how a number or a flag is written in the file; None for a value that the file does not have."""
        return self._written.get(self._origin(location))

    def inherit(self, location: Location, origin: Location) -> None:
        """Record that the merged value at `location` was written at `origin`."""
        if location != origin:
            self._inherited[location] = origin

    def copy(self) -> "Source":
        """Return a copy to merge other values into."""
        return Source(self.file, copy.deepcopy(self.values), self._lines, self._written)

    def _origin(self, location: Location) -> Location:
        """Return where a value was written: an actor's may come from `defaults`, and that from a stage or a legacy form.

        A missing key is missing where the mapping around it was written.
        """
        for end in range(len(location), 0, -1):
            origin = self._inherited.get(location[:end])
            # A legacy form may be a part of the value that replaces it.
            if origin is not None and origin[:end] != location[:end]:
                return self._origin((*origin, *location[end:]))
        return location


def places(value: Any) -> list[Location]:
    """Return the location of each value within a value, starting with itself."""
    found: list[Location] = [()]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += [(key, *inner) for inner in places(item)]
    return found


def format_location(location: Location) -> str:
    """Return a location as text, such as `actors.clean.access[0].bucket`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_source(path: Path, shown_as: str | None = None) -> Source:
    """Read a mesh file.

    Args:
        path: the mesh file.
        shown_as: the file name in messages; by default the path.

    Raises:
        MeshFileError: the file is missing or unreadable, its text is not valid YAML, or a key is duplicate.
    """
    file = shown_as or str(path)
    try:
        text = decode_text(path.read_bytes())
    except FileNotFoundError:
        raise _unreadable(
            file,
            "there is no such file; name the mesh file: `asya … --mesh FILE`, `cdk … -c mesh=FILE`, or `asya_mesh = FILE` in the "
            "configuration of pytest",
        ) from None
    except OSError as error:
        raise _unreadable(file, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _unreadable(file, f"is not UTF-8 text (byte {error.start})") from None
    return _parse(file, text)


def _parse(file: str, text: str) -> Source:
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        reader = _NodeReader(file, loader)
        values = reader.read(root, ()) if root is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        reason = " ".join(part for part in (error.context, error.problem) if part)
        advice = "; put text that begins with * in quotes" if error.context == "while scanning an alias" else ""
        raise MeshFileError([Problem(file, line, "", f"not valid YAML: {reason}{advice}")]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise _unreadable(file, f"not valid YAML: {' '.join(str(error).split())}") from None
    if reader.problems:
        raise MeshFileError(reader.problems)
    if not isinstance(values, dict):
        got = "the file is empty" if values is None else f"got {_kind(values)}"
        raise _unreadable(file, f"should be a mapping with `namespace` and `actors`; {got}")
    return Source(file, values, reader.lines, reader.written)


class _NodeReader:
    """Converts YAML nodes to values, and collects the line, the written form and the problems of each key."""

    def __init__(self, file: str, loader: _Loader) -> None:
        self._file = file
        self._loader = loader
        self.lines: dict[Location, int] = {}
        self.written: dict[Location, str] = {}
        self.problems: list[Problem] = []

    def read(self, node: yaml.Node, location: Location) -> Any:
        self.lines.setdefault(location, node.start_mark.line + 1)
        if len(location) > _NESTING_LIMIT:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=node.start_mark)
        if len(self.lines) > _VALUES_LIMIT:
            raise yaml.MarkedYAMLError(problem="too many values", problem_mark=node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*location, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        value = self._scalar(node, location)
        if not isinstance(value, str):
            self.written[location] = node.value
        elif _SURROGATE.search(value):
            self._report(node, location, f"{value!a} has half of a surrogate pair, which is no character")
        return value

    def _scalar(self, node: yaml.ScalarNode, location: Location) -> Any:
        """Return the value of a scalar; infinity for a whole number of more digits than Python reads."""
        if node.tag == _MERGE:
            return node.value  # `<<` is a merge only as a key
        try:
            return self._loader.construct_object(node)
        except (ValueError, KeyError, AttributeError):
            if re.fullmatch(_INT, node.value):
                return math.inf
            self._report(node, location, f"{node.value!r} is no value of {node.tag}")
            return None

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        first_lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key, line = getattr(key_node, "value", None), key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, location, "should be text, because it is a key")
            elif _SURROGATE.search(key_node.value):
                # The key itself could not be printed.
                problem = f"the key {key_node.value!a} has half of a surrogate pair, which is no character"
                self._report(key_node, location, problem)
            elif key in first_lines:
                self._report(
                    key_node,
                    (*location, str(key)),
                    f"duplicate key, first in line {first_lines[key]}; keep one of them",
                )
            first_lines.setdefault(key if isinstance(key, str) else id(key_node), line)
        self._loader.flatten_mapping(node)  # `<<: *other`
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            # The text of the key: `8: x` and `"8": x` are the same.
            place = (*location, str(key_node.value))
            self.lines[place] = key_node.start_mark.line + 1
            values[str(key_node.value)] = self.read(value_node, place)
        return values

    def _report(self, node: yaml.Node, location: Location, message: str) -> None:
        self.problems.append(Problem(self._file, node.start_mark.line + 1, format_location(location), message))


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, Mapping) else "a single value"


def _unreadable(file: str, message: str) -> MeshFileError:
    return MeshFileError([Problem(file, 1, "", message)])
