"""Finds the least mesh with two values of options, or shows that the loader refuses them together wherever both may be.

A value needs the sections around it, an entry that may have it, and sometimes a value of another key. All such least choices of one
value, each beside all those of the other one, are the meshes in which the loader is asked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from tests.infra.combinations.judged import Accepted, Choice, Judge
from tests.infra.combinations.options import ANY, Path

Item = tuple[str, int]
"""An option, and its level; 0 is the option without a value."""


class LeastMeshes:
    """Asks the loader about values in meshes that have little else."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: dict[Item, list[Choice]] = {}
        names = [option.path for option in judge.options.values() if option.levels]
        self._actors = [".".join(path) for path in names if len(path) == 2 and path[0] == "actors" and path[1] != ANY]

    def of(self, one: Item, other: Item) -> Accepted | str:
        """Return the least mesh with two values, or why the loader refuses them in each mesh that may have both."""
        chosen = {name: level for name, level in (one, other) if level}
        absent = {name for name, level in (one, other) if not level}
        reasons: dict[str, None] = {}
        for bases in (self._bases, self._reconciled):
            for base in bases(one, other, reasons):
                if absent.isdisjoint(base):
                    found = self._judge.judged({**base, **chosen}, frozenset(chosen))
                    if isinstance(found, Accepted):
                        return found
                    reasons[found] = None
        return next(iter(reasons), f"needs {' or '.join(sorted(absent))}")

    def _bases(self, one: Item, other: Item, reasons: Iterable[str] = ()) -> Iterator[Choice]:
        """Yield what two values need, first at the same entry."""
        together = [{**first, **second} for first, second in product(self._cores(one), self._cores(other))]
        for base in sorted(together, key=len):
            yield from self._with_actors(base)

    def _reconciled(self, one: Item, other: Item, reasons: Iterable[str]) -> Iterator[Choice]:
        """Yield the same with a value of another key: one that the loader names, or that takes back what `defaults` says."""
        words = {word for reason in reasons for word in re.findall(r"[\w-]+", reason)}
        taken_back = {
            f"actors.*.{name.removeprefix('defaults.')}" for name, _ in (one, other) if name.startswith("defaults.")
        }
        for name, option in self._judge.options.items():
            if name not in (one[0], other[0]) and (option.path[-1] in words or name in taken_back):
                for level, base in product(range(1, len(option.levels) + 1), self._bases(one, other)):
                    yield {**base, name: level}

    def _with_actors(self, base: Choice, *, is_led_on: bool = True) -> Iterator[Choice]:
        """Yield a choice with an actor: each mesh has one."""
        if base.keys().isdisjoint(self._actors):
            yield from ({**base, actor: 1} for actor in self._actors)
        else:
            yield base
            if is_led_on and "actors.light" not in base:
                yield {**base, "actors.light": 1}  # then-routes, hooks and the like lead to it

    def _cores(self, item: Item) -> list[Choice]:
        """Return what a value needs beside it: one choice for each entry, and for each helper if it needs one."""
        if item not in self._known:
            self._known[item] = [*self._found_cores(item)] if item[1] else [{}]
        return self._known[item]

    def _found_cores(self, item: Item) -> Iterator[Choice]:
        name, level = item
        option = self._judge.options[name]
        around = list(self._around(option.path, option.levels[level - 1]))
        siblings = self._judge.beside(name)
        others = [each for each in self._judge.options if each not in siblings and each != name]
        for helpers, is_led_on in (([""], False), ([""], True), (siblings, False), (siblings, True), (others, True)):
            found = [core for core in around for core in self._helped(item, core, helpers, is_led_on=is_led_on)]
            if found:
                yield from found
                return

    def _helped(self, item: Item, core: Choice, helpers: list[str], *, is_led_on: bool) -> Iterator[Choice]:
        name, level = item
        for helper in helpers:
            count = len(self._judge.options[helper].levels) if helper else 1
            for helped in ({**core, helper: its} if helper else core for its in range(1, count + 1)):
                bases = self._with_actors(helped, is_led_on=is_led_on)
                if any(self._judge.accepted({**base, name: level}, protected=frozenset({name})) for base in bases):
                    yield helped

    def _around(self, path: Path, value: Any) -> Iterator[Choice]:
        """Yield the sections and the entries around an option, and those that its value leads to."""
        needed: list[list[Choice]] = [[self._led_to(value)]]
        for depth in range(1, len(path)):
            above = path[:depth]
            if above[-1] == ANY:
                needed.append([*self._entries(above[:-1])])
            elif (section := self._judge.options.get(".".join(above))) is not None and section.levels:
                needed.append([{section.name: 1}])
        for choices in product(*needed):
            yield {name: level for choice in choices for name, level in choice.items()}

    def _entries(self, mapping: Path) -> Iterator[Choice]:
        for option in self._judge.options.values():
            if option.path[:-1] == mapping and option.levels:
                yield {option.name: 1, **self._led_to(option.levels[0])}

    def _led_to(self, value: Any) -> Choice:
        """Return the actors of the route of a tool or a trigger."""
        route = value.get("route", ()) if isinstance(value, Mapping) else ()
        return {f"actors.{actor}": 1 for actor in route if f"actors.{actor}" in self._judge.options}
