"""Chooses meshes that have all pairs of values which the loader lets stand together. An option without a value has one, too."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.infra.combinations.judged import Accepted, Choice, Judge
from tests.infra.combinations.least import Item, LeastMeshes

Pair = tuple[Item, Item]
_SEED = 20_260_101
_TRIES = 6
"""Choices in a row that add no pair before the values that few of the rows have get meshes of their own."""
_WORTH_A_MESH = 12
"""The new pairs of one value that a further mesh has at least."""
_BASES: tuple[Choice, ...] = ({}, {"actors.light": 1}, {"actors.end": 1})
"""The least meshes: `defaults` that some kinds of actors refuse are valid in one of them."""


@dataclass
class PairwiseMeshes:
    """Meshes that together have the pairs.

    Attributes:
        meshes: the first ones have most pairs.
        refused: the pairs that no mesh may have, each with the reason of the loader.
    """

    judge: Judge
    meshes: list[Accepted] = field(default_factory=list)
    refused: dict[Pair, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(_SEED)
        self._items = [
            (name, level) for name, option in self.judge.options.items() for level in range(len(option.levels) + 1)
        ]
        self._bits = {item: 1 << number for number, item in enumerate(self._items)}
        everything = sum(self._bits.values())
        own = {name: sum(self._bits[item] for item in self._items if item[0] == name) for name in self.judge.options}
        self._left = {item: everything & ~own[item[0]] for item in self._items}
        self.used: set[Item] = set()

    def choose(self, most: int | None = None) -> None:
        """Choose meshes until a further one is not worth its time; or only the first ones."""
        fruitless = 0
        while fruitless < _TRIES and (most is None or len(self.meshes) < most):
            fruitless = 0 if self._add(self.judge.accepted(self._row({}))) else fruitless + 1
        if most is None:
            self._complete_the_rare()
            self._complete_the_legal()
            self.meshes = self._fewest()

    @property
    def pairs(self) -> int:
        """The number of pairs of levels of two options, those without a value included."""
        own = [len(option.levels) + 1 for option in self.judge.options.values() if option.levels]
        return (sum(own) ** 2 - sum(count**2 for count in own)) // 2

    @property
    def left(self) -> list[Pair]:
        """The pairs that no mesh has."""
        return [
            (one, other)
            for number, one in enumerate(self._items)
            for other in self._items[number + 1 :]
            if self._left[one] & self._bits[other]
        ]

    @property
    def unused(self) -> list[Item]:
        """The values that no mesh has."""
        return [item for item in self._items if item[1] and item not in self.used]

    def _complete_the_rare(self) -> None:
        """Choose meshes around each value that few of the rows have, because the loader refuses it beside many others."""
        rare = {item for item in self._items if item[1]}
        while rare:
            item = max(sorted(rare), key=lambda each: (each not in self.used, len(self._partners(each))))
            if item in self.used and len(self._partners(item)) < _WORTH_A_MESH:
                break
            rare.remove(item)
            self._complete(item)

    def _complete_the_legal(self) -> None:
        """Choose small meshes for the pairs that are left, and find out which of them the loader refuses."""
        least = LeastMeshes(self.judge)
        left: dict[Pair, Choice] = {}
        for pair in self.left:
            found = least.of(*pair)
            if isinstance(found, Accepted):
                left[pair] = found.levels
            else:
                self.refused[pair] = found
        while left:
            self._add(self._packed(left))
            left = {pair: levels for pair, levels in left.items() if self._left[pair[0]] & self._bits[pair[1]]}

    def _packed(self, left: Mapping[Pair, Choice]) -> Accepted:
        """Return a mesh with as many pairs as go together, from their least meshes."""
        count = Counter(item for pair in left for item in pair)
        ordered = sorted(
            left, key=lambda pair: (-max(map(count.__getitem__, pair)), -sum(map(count.__getitem__, pair)))
        )
        mesh: Accepted | None = None
        levels: Choice = {}
        absent: set[str] = set()
        kept: set[str] = set()
        for pair in ordered:
            own = left[pair]
            shown = {name for name, level in pair if level}
            without = absent | {name for name, level in pair if not level}
            is_there = mesh is not None and all(mesh.levels.get(name, 0) == level for name, level in pair)
            differs = any(levels.get(name, level) != level for name, level in own.items())
            if is_there or differs or not without.isdisjoint({*levels, *own}):
                continue
            found = self.judge.accepted({**levels, **own}, protected=frozenset(kept | shown))
            if found is not None:
                mesh, levels, absent, kept = found, {**levels, **own}, without, kept | shown
        assert mesh is not None, "the loader accepts the least mesh of each pair"
        return mesh

    def _complete(self, item: Item) -> None:
        """Choose meshes with a value as long as each has several new pairs of it."""
        core = next(self._cores(item), None)
        if core is None:
            return
        is_worth = True
        while is_worth:
            left = len(self._partners(item))
            self._add(self._around(item, core))
            is_worth = left - len(self._partners(item)) >= _WORTH_A_MESH

    def _cores(self, item: Item) -> Iterator[Choice]:
        """Yield small choices in which the loader accepts a value: without more, or with another key of its section."""
        name, level = item
        section = name.rpartition(".")[0]
        helpers = [{each: its} for each, its in self._items if its and each.rpartition(".")[0] == section != ""]
        for helper in ({}, *helpers):
            for base in (self.judge.every_entry, *_BASES):
                core = {**base, **helper, name: level}
                if self.judge.accepted(core, protected=frozenset({name})) is not None:
                    yield core

    def _around(self, item: Item, core: Choice) -> Accepted | None:
        """Return a mesh with a value and as many others as the loader accepts beside it, by halves."""
        entries = {name for name in self.judge.every_entry if name not in core}
        row = self._row(core, entries, self._bits[item])
        others = [name for name in row if name not in core]
        while True:
            mesh = self.judge.accepted({**core, **{name: row[name] for name in others}}, protected=frozenset({item[0]}))
            if mesh is not None or not others:
                return mesh
            others = self._random.sample(others, len(others) // 2)

    def _fewest(self) -> list[Accepted]:
        """Return the meshes that have all pairs together: again and again the one with most pairs that are left."""
        masks = [self._mask(mesh) for mesh in self.meshes]
        left = dict.fromkeys(self._items, sum(self._bits.values()))
        most = dict.fromkeys(range(len(masks)), len(self._items) ** 2)
        found: list[Accepted] = []
        while most:
            best, gain = 0, 0
            for number in sorted(most, key=lambda each: -most[each]):
                if most[number] <= gain:
                    break  # the pairs that a mesh adds become only fewer
                items = self._items_of(self.meshes[number])
                most[number] = sum((left[item] & masks[number]).bit_count() for item in items)
                if most[number] > gain:
                    best, gain = number, most[number]
            if not gain:
                break
            del most[best]
            found.append(self.meshes[best])
            for item in self._items_of(found[-1]):
                left[item] &= ~masks[best]
        return found

    def _items_of(self, mesh: Accepted) -> list[Item]:
        return [(name, mesh.levels.get(name, 0)) for name in self.judge.options]

    def _mask(self, mesh: Accepted) -> int:
        return sum(self._bits[item] for item in self._items_of(mesh))

    def _partners(self, item: Item) -> list[Item]:
        """Return the values with which a value is in no mesh."""
        return [other for other in self.used if other[1] and self._left[item] & self._bits[other]]

    def _row(self, fixed: Choice, absent: set[str] | None = None, focus: int = 0) -> dict[str, int]:
        """Return a choice with these levels, and for each further option the level with the most new pairs.

        Args:
            fixed: levels that stay.
            absent: options without a value.
            focus: the bits of values whose pairs come first.
        """
        chosen = dict(fixed)
        mask = sum(self._bits[item] for item in chosen.items())
        names = [name for name in self.judge.options if name not in chosen and name not in (absent or ())]
        self._random.shuffle(names)
        for name in names:
            levels = [*range(len(self.judge.options[name].levels) + 1)]
            self._random.shuffle(levels)
            best = max(levels, key=lambda level: self._gain((name, level), focus, mask))
            mask |= self._bits[name, best]
            if best:
                chosen[name] = best
        return chosen

    def _gain(self, item: Item, focus: int, mask: int) -> tuple[int, int]:
        return (self._left[item] & focus).bit_count(), (self._left[item] & mask).bit_count()

    def _add(self, mesh: Accepted | None) -> bool:
        """Keep a mesh if it has new pairs."""
        if mesh is None:
            return False
        items, mask = self._items_of(mesh), self._mask(mesh)
        if not any(self._left[item] & mask for item in items):
            return False
        for item in items:
            self._left[item] &= ~mask
        self.used |= set(items)
        self.meshes.append(mesh)
        return True
