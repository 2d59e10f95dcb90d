"""Parses the YAML of a mesh file into plain values, with the line of every key, and merges the values of a stage into them.

Plain scalars follow the core schema of YAML 1.2: `no`, `on`, dates and `1:30` are text. A scalar that is no text keeps its
written form beside its value, for the keys that take text. A problem has its file, its line, its key, and what to do.
"""

import copy
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from asya.protocol import names
from asya.protocol.text import decode_text


@dataclass(frozen=True, order=True)
class Problem:
    """One problem in a mesh file; `where` is the key, such as `actors.clean.timeout`."""

    file: str
    line: int
    where: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place}: {self.where}: {self.message}" if self.where else f"{place}: {self.message}"


class MeshFileError(Exception):
    """An invalid mesh file. `problems` has all problems in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'timeout'?`, or an empty text if no known word is similar."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


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


KEY = "stages"
# The same in every stage: the stage's own namespace is made of the base's, and the code is tested before it is promoted.
FIXED_KEYS = ("namespace", "code", "jobs", "capabilities", KEY)


def declared_stages(source: Source) -> dict[str, dict[str, Any]]:
    """Return the declared stages by name. A stage that is not a mapping, which validation reports, counts as empty."""
    stages = source.values.get(KEY)
    if not isinstance(stages, dict):
        return {}
    return {name: stage if isinstance(stage, dict) else {} for name, stage in stages.items()}


def with_stage(source: Source, stage: str) -> Source:
    """Return the values of the mesh file with those of a declared stage merged over them.

    Mappings are merged key by key; lists and single values are replaced. `stage_problems` reports what is left out.
    """
    merged = source.copy()
    own = {key: value for key, value in declared_stages(source)[stage].items() if key not in FIXED_KEYS}
    base, actors = source.values.get("actors"), own.get("actors")
    if isinstance(base, dict) and isinstance(actors, dict):
        own["actors"] = {name: actor for name, actor in actors.items() if name in base}
    _merge(merged, merged.values, own, (), (KEY, stage))
    return merged


def stage_problems(source: Source, selected: str) -> Iterator[Problem]:
    """Yield the problems of the stages that merging would hide.

    Args:
        source: the mesh file.
        selected: the stage to deploy; empty for the base.
    """
    stages = declared_stages(source)
    for stage, values in stages.items():
        yield from (source.problem((KEY, stage, *place), text) for place, text in _findings(source, stage, values))
    if selected and stages and selected not in stages:
        suggestion = did_you_mean(selected, stages)
        yield source.problem((KEY,), f"there is no stage {selected!r}; declared: {', '.join(stages)}{suggestion}")


def name_stage(problem: Problem, stage: str) -> Problem:
    """Name the stage in a problem that only this stage has, unless the problem is at a value of the stage."""
    if problem.where.startswith(f"{KEY}.{stage}"):
        return problem
    return replace(problem, message=f"{problem.message} (in the stage {stage!r})")


def _findings(source: Source, stage: str, values: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    try:
        names.check_label(stage, "stage")
    except ValueError as error:
        yield (), str(error)
    for key in FIXED_KEYS:
        if key in values:
            yield (key,), "is the same in every stage; set it at the top of the file"
    base, own = source.values.get("actors"), values.get("actors")
    if isinstance(base, dict) and isinstance(own, dict):
        for name in own.keys() - base.keys():
            advice = did_you_mean(name, base) or "; add it to the actors of the file"
            yield ("actors", name), f"there is no actor {name!r} to override{advice}"


def _merge(source: Source, base: dict[str, Any], own: dict[str, Any], at: Location, origin: Location) -> None:
    for key, value in own.items():
        if isinstance(base.get(key), dict) and isinstance(value, dict):
            _merge(source, base[key], value, (*at, key), (*origin, key))
        else:
            base[key] = copy.deepcopy(value)
            for inner in places(value):
                source.inherit((*at, key, *inner), (*origin, key, *inner))
