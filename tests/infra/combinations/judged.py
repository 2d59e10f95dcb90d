"""Meshes with chosen options, and the loader as the judge of what goes together.

An option with `*` in its path is set at each entry that may have it. A value that the loader refuses there is left out there, so a
mesh keeps as much of a choice as the loader accepts.
"""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from asya_infra.mesh_file.checks import run_checks
from asya_infra.mesh_file.checks.context import Context
from asya_infra.mesh_file.source import Location, Problem, Source
from asya_infra.mesh_file.validation import validate
from tests.infra.combinations.options import ANY, Ladder, Option, Path
from tests.infra.combinations.samples import CODE, FIXED, SKELETON

Choice = Mapping[str, int]
"""The level of options by their names, counted from 1; options that are not there have no value."""
MeshValues = dict[str, Any]
_NAMESPACE = "shop"
_FEW_ACTORS = {"actors.light": 1, "actors.heavy": 1}
"""Those that tools and triggers lead to."""


@dataclass(frozen=True)
class Accepted:
    """A mesh that the loader accepts: its values, and the levels that are left."""

    values: MeshValues
    levels: Choice

    @property
    def text(self) -> str:
        """The mesh file."""
        return json.dumps(self.values, indent=1)  # JSON is YAML


@dataclass(frozen=True)
class _Found:
    place: Location
    message: str


@dataclass(frozen=True)
class _Written:
    option: str
    place: Location


class Judge:
    """Asks the loader which choices are valid meshes.

    Attributes:
        folder: the folder with the code of the meshes.
        options: those of the mesh file; ladders are reduced to the ends that the loader accepts at some entry.
    """

    def __init__(self, folder: FilePath, options: Iterable[Option]) -> None:
        for name, content in CODE.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        self.folder = folder
        self.options = {option.name: option for option in options}
        self._sections = {option.path for option in self.options.values()}
        for name, option in self.options.items():
            if option.ladder is not None:
                self.options[name] = self._without_ladder(option, option.ladder)

    @property
    def every_entry(self) -> dict[str, int]:
        """The choice of all actors, tools and triggers, and of all sections that are empty without a choice."""
        return {name: 1 for name, each in self.options.items() if each.levels and isinstance(each.levels[0], dict)}

    def accepted(self, choice: Choice, *, protected: frozenset[str] = frozenset()) -> Accepted | None:
        """Return the mesh with as much of a choice as the loader accepts.

        Args:
            choice: the levels.
            protected: the options that stay; None is returned if the loader refuses one of them in each place.
        """
        found = self.judged(choice, protected)
        return found if isinstance(found, Accepted) else None

    def judged(self, choice: Choice, protected: frozenset[str]) -> Accepted | str:
        """Return the mesh with as much of a choice as the loader accepts, or why it refuses what stays."""
        refused: set[_Written] = set()
        reason = "its section is not there"
        while True:
            values, written = self._build(choice, refused)
            kept = {each.option for each in written}
            if not protected <= kept:
                return reason
            problems = self._problems(values)
            if not problems:
                return Accepted(values, {name: level for name, level in choice.items() if name in kept})
            reason = problems[0].message
            # One at a time in each entry: the next problem may have the same cause.
            first = {each.place[:2]: each for each in reversed(problems)}.values()
            culprits = {culprit for each in first if (culprit := _culprit(each, written, protected)) is not None}
            if not culprits:
                return reason
            refused |= culprits

    def everything(self, without: Set[str] = frozenset()) -> Accepted:
        """Return the mesh with each option at its first level, or the largest amount, as far as they go together."""
        chosen = {name: each for name, each in self.options.items() if each.levels and name not in without}
        mesh = self.accepted({name: len(each.levels) if each.is_amount else 1 for name, each in chosen.items()})
        assert mesh is not None
        return mesh

    def _without_ladder(self, option: Option, ladder: Ladder) -> Option:
        """Return an option with `none`, and with the least and the largest value that the loader accepts at each entry.

        A value that another key of the section has to allow is tried beside each of them.
        """
        siblings = self.beside(option.name)
        entries = "actors" if option.path[0] == "defaults" else option.path[0]
        base = {
            name: level
            for name, level in self.every_entry.items()
            if not _is_entry(self.options[name].path) or self.options[name].path[0] == entries
        }
        base |= _FEW_ACTORS
        alone = {name: level for name, level in base.items() if name not in siblings}
        contexts = [base, alone, *({**base, each: 1} for each in siblings)]
        for context in contexts:
            trial = _Trial(self, option, ladder.write, context)
            first, last = trial.ends(ladder.rungs), trial.ends(ladder.rungs[::-1])
            if first:
                break
        steps = [*first, *last]
        assert steps, f"no mesh has {option.name}"
        next_ones = ((min(steps) - 1, ladder.rungs[0]), (max(steps) + 1, ladder.rungs[-1]))
        outer = [step for step, end in next_ones if end not in steps]
        # The bounds of the type may need another value of another key.
        declared = ladder.rungs[1:-1] if ladder.is_bounded else ()
        levels = dict.fromkeys([*option.levels, *map(ladder.write, (*declared, *steps))])
        return replace(option, levels=tuple(levels), ladder=None, beyond=tuple(map(ladder.write, outer)))

    def beside(self, name: str) -> list[str]:
        """Return the other options of a section that have values."""
        section = self.options[name].path[:-1]
        return [
            each.name
            for each in self.options.values()
            if section and each.path[:-1] == section and each.name != name and each.levels
        ]

    def places_of(self, option: Option, choice: Choice) -> set[Location]:
        """Return the places where the loader accepts the only value of an option, beside a choice."""
        former = self.options[option.name]
        self.options[option.name] = option
        values, written = self._build(choice, set())
        self.options[option.name] = former
        problems = self._problems(values)
        own = {each.place for each in written if each.option == option.name}
        return {place for place in own if not any(_is_about(place, each.place) for each in problems)}

    def _build(self, choice: Choice, refused: set[_Written]) -> tuple[MeshValues, list[_Written]]:
        values: MeshValues = {"namespace": _NAMESPACE, **FIXED}
        written: list[_Written] = []
        for name, option in self.options.items():
            level = choice.get(name, 0)
            if level:
                for place in [*self._places(option.path, values)]:
                    each = _Written(name, place)
                    if each not in refused:
                        _set(values, place, copy.deepcopy(option.levels[level - 1]))
                        written.append(each)
        return values, written

    def _places(self, path: Path, values: MeshValues) -> Iterator[Location]:
        """Yield the places of an option in a mesh; none if its section is one that has to be chosen, and is not there."""
        found: list[tuple[Location, Any]] = [((), values)]
        for depth, part in enumerate(path[:-1], start=1):
            following: list[tuple[Location, Any]] = []
            for place, node in found:
                if part == ANY:
                    following += [((*place, key), value) for key, value in node.items()]
                elif part in node:
                    following.append(((*place, part), node[part]))
                elif path[:depth] not in self._sections | SKELETON:
                    following.append(((*place, part), {}))
            found = [(place, node) for place, node in following if isinstance(node, dict)]
        yield from ((*place, path[-1]) for place, _ in found)

    def _problems(self, values: MeshValues) -> list["_Found"]:
        """Return what the loader finds."""
        source = _Places("mesh.yaml", copy.deepcopy(values), {}, {})
        validated = validate(source, self.folder)
        problems = [*validated.problems]
        if validated.mesh is not None:
            # The names of a stage are longer.
            namespace = "-".join((validated.mesh.namespace, *validated.mesh.stages))
            context = Context(validated.mesh, self.folder, namespace, validated.capabilities.registry)
            findings = [(place, text) for place, text in run_checks(context) if not validated.is_consequence(place)]
            problems += [source.problem(place, text) for place, text in findings]
        return [_Found(tuple(json.loads(problem.where)), problem.message) for problem in problems]


class _Trial:
    """Tries values of one option at all entries that may have it."""

    def __init__(self, judge: Judge, option: Option, write: Callable[[int], Any], context: Choice) -> None:
        self._judge = judge
        self._option = option
        self._write = write
        self._context = {**context, option.name: 1}
        self._known: dict[int, set[Location]] = {}

    def ends(self, rungs: Sequence[int]) -> list[int]:
        """Return the first steps, from one end of a ladder, that the loader accepts: one for each group of entries.

        The loader refuses the next step before each of them, if the end of the ladder is not among them.
        """
        found: list[int] = []
        closed: set[Location] = set()
        before: int | None = None
        for rung in rungs:
            while new := self._places(rung) - closed:
                end = rung if before is None else self._between(before, rung, new)
                found.append(end)
                closed |= self._places(end)
            before = rung
        return found

    def _between(self, refused: int, accepted: int, places: set[Location]) -> int:
        """Return the step nearest to a refused one that the loader accepts at one of the places."""
        while abs(accepted - refused) > 1:
            middle = (accepted + refused) // 2
            if self._places(middle) & places:
                accepted = middle
            else:
                refused = middle
        return accepted

    def _places(self, step: int) -> set[Location]:
        """Return the places where the loader accepts a value."""
        if step not in self._known:
            option = replace(self._option, levels=(self._write(step),))
            self._known[step] = self._judge.places_of(option, self._context)
        return self._known[step]


class _Places(Source):
    """Values whose problems name their places as JSON."""

    def problem(self, location: Location, message: str) -> Problem:
        return Problem(self.file, 1, json.dumps(self._origin(location)), message)

    def copy(self) -> "_Places":
        return _Places(self.file, copy.deepcopy(self.values), {}, {})


def _set(values: MeshValues, place: Location, value: Any) -> None:
    node: Any = values
    for part in place[:-1]:
        node = node.setdefault(part, {})
    node[place[-1]] = value


def _is_about(place: Location, other: Location) -> bool:
    """Whether one place is the other one, or in it."""
    shorter = min(len(place), len(other))
    return place[:shorter] == other[:shorter]


def _culprit(problem: _Found, written: list[_Written], protected: frozenset[str]) -> _Written | None:
    """Return what to leave out for a problem, or None.

    It is the key itself or the nearest one around it, or else the last one below it, or one of the same actor that the message
    names, or at last the whole actor.
    """
    place = problem.place
    places = Counter(each.option for each in written)
    free = [each for each in written if each.option not in protected or places[each.option] > 1]
    around = [each for each in free if place[: len(each.place)] == each.place]
    nearest = sorted((each for each in around if not _is_entry(each.place)), key=lambda each: len(each.place))
    below = [each for each in free if each.place[: len(place)] == place and each.place != place]
    named = [each for each in free if _key_in(each.place, place) in problem.message.split()]
    return (nearest[-1:] or below[-1:] or named[:1] or around[-1:] or [None])[-1]


def _key_in(written: Location, place: Location) -> str | None:
    """Return the key of a value of the same entry, or of `defaults`, as messages have it."""
    start = 2 if written[:2] == place[:2] else 1 if written[0] == "defaults" and place[0] == "actors" else None
    return ".".join(map(str, written[start:])) if start is not None else None


def _is_entry(place: Sequence[Any]) -> bool:
    return len(place) == 2 and place[0] in ("actors", "tools", "triggers")
