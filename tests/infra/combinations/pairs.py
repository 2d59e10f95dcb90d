"""Chooses meshes so that each pair of values of two options is in one of them, unless the loader refuses every mesh with it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.infra.combinations.judged import Accepted, Choice, Judge

_Item = tuple[str, int]
_SEED = 20_260_101
_TRIES = 6
"""Choices in a row that add no pair before the pairs that are left are tried one by one."""


@dataclass
class PairwiseMeshes:
    """Meshes that together have all pairs.

    Attributes:
        meshes: in the order of choice; the first ones have most pairs.
        refused: the pairs that no mesh may have, both values being valid alone.
    """

    judge: Judge
    meshes: list[Accepted] = field(default_factory=list)
    refused: list[tuple[_Item, _Item]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(_SEED)
        self._items = [
            (name, level) for name, option in self.judge.options.items() for level in range(len(option.levels) + 1)
        ]
        self._bits = {item: 1 << number for number, item in enumerate(self._items)}
        everything = sum(self._bits.values())
        own = {name: sum(self._bits[item] for item in self._items if item[0] == name) for name in self.judge.options}
        self._left = {item: everything & ~own[item[0]] for item in self._items}
        self.used: set[_Item] = set()

    def choose(self, most: int | None = None) -> None:
        """Choose meshes until each pair is in one, or refused; or only the first ones."""
        fruitless = 0
        while fruitless < _TRIES and (most is None or len(self.meshes) < most):
            fruitless = 0 if self._add(self.judge.accepted(self._row({}))) else fruitless + 1
        if most is None:
            self._help_the_unused()
            self._try_the_rest()

    @property
    def covered(self) -> int:
        """The number of pairs of values, both there, that some mesh has."""
        shown = [item for item in self._items if item[1] and item in self.used]
        mask = sum(self._bits[item] for item in shown)
        total = sum((mask & ~self._left[item]).bit_count() for item in shown)
        own = sum(1 for one in shown for other in shown if one[0] == other[0])
        return (total - own) // 2

    def _help_the_unused(self) -> None:
        """Find for each value that no mesh has another option with which the loader accepts it."""
        for item in [each for each in self._items if each[1] and each not in self.used]:
            for helper in self._items:
                protected = frozenset({item[0]})
                choice = self._with_sections(dict((helper, item)) if helper[1] else {item[0]: item[1]}, set())
                if helper[0] != item[0] and self.judge.accepted(choice, protected=protected) is not None:
                    self._add(self.judge.accepted(self._row(choice), protected=protected))
                    break

    @property
    def unused(self) -> list[_Item]:
        """The values that no mesh has."""
        return [item for item in self._items if item[1] and item not in self.used]

    def _try_the_rest(self) -> None:
        for one, other in [*self._pairs_left()]:
            if not self._left[one] & self._bits[other]:
                continue
            chosen = {name: level for name, level in (one, other) if level}
            protected = frozenset(chosen)
            absent = {name for name, level in (one, other) if not level}
            mesh = self.judge.accepted(self._with_sections(chosen, absent), protected=protected)
            if mesh is None or absent & mesh.levels.keys():
                self.refused.append((one, other))
                continue
            fuller = self.judge.accepted(self._row(self._with_sections(chosen, absent), absent), protected=protected)
            self._add(mesh if fuller is None or absent & fuller.levels.keys() else fuller)

    def _pairs_left(self) -> Iterator[tuple[_Item, _Item]]:
        """Yield the pairs of values that no mesh has; one of them may be that the option is not there."""
        for number, one in enumerate(self._items):
            for other in self._items[number + 1 :]:
                if self._left[one] & self._bits[other] and (one[1] or other[1]) and {one, other} <= self._known():
                    yield one, other

    def _known(self) -> set[_Item]:
        return self.used | {item for item in self._items if not item[1]}

    def _with_sections(self, chosen: dict[str, int], absent: set[str]) -> dict[str, int]:
        """Return a choice with all actors, tools, triggers and sections, in which each option has its place."""
        return {name: level for name, level in {**self.judge.every_entry, **chosen}.items() if name not in absent}

    def _row(self, fixed: Choice, absent: set[str] | None = None) -> dict[str, int]:
        """Return a choice with these levels, and for each further option the level with the most new pairs."""
        chosen = dict(fixed)
        mask = sum(self._bits[item] for item in chosen.items())
        names = [name for name in self.judge.options if name not in chosen and name not in (absent or ())]
        self._random.shuffle(names)
        for name in names:
            levels = [*range(len(self.judge.options[name].levels) + 1)]
            self._random.shuffle(levels)
            best = max(levels, key=lambda level: (self._left[name, level] & mask).bit_count())
            mask |= self._bits[name, best]
            if best:
                chosen[name] = best
        return chosen

    def _add(self, mesh: Accepted | None) -> bool:
        """Keep a mesh if it has new pairs."""
        if mesh is None:
            return False
        items = [(name, mesh.levels.get(name, 0)) for name in self.judge.options]
        mask = sum(self._bits[item] for item in items)
        if not any(self._left[item] & mask for item in items):
            return False
        for item in items:
            self._left[item] &= ~mask
        self.used |= set(items)
        self.meshes.append(mesh)
        return True
