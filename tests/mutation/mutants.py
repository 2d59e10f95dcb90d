"""The mutants that mutmut has written: what each changes, and which of them belong to the sample."""

import ast
import hashlib
import heapq
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

PACKAGES = ("protocol", "tasks/starts", "capabilities/triggers", "capabilities/fan_in", "tasks/reporting")
_NAME = re.compile(r"x.+__mutmut_(\d+|orig)")
# mutmut's mark between the parts of the name of a method.
_MARK = "ǁ"
_SURVIVED = frozenset({0, 5, 33})
"""Exit codes of pytest for a mutant that all tests pass, or that no test reaches; any other one kills it."""


@dataclass(frozen=True, order=True)
class Change:
    """What a mutant changes, by its text: the name of a mutant changes with the code around it.

    Attributes:
        place: the function, such as `asya.capabilities.triggers.lane_changes.settle`.
        removed, added: the statements, as Python writes them without comments.
    """

    place: str
    removed: str
    added: str

    @property
    def order(self) -> bytes:
        """Decides about the sample: a change of other code adds no mutant to it, and takes none out."""
        return hashlib.sha256("\n".join((self.place, self.removed, self.added)).encode()).digest()


@dataclass(frozen=True)
class Mutant:
    """A mutant by the name that mutmut gave it."""

    name: str
    package: str
    change: Change


@dataclass(frozen=True)
class Sample:
    """The mutants to try, and how many there are.

    Attributes:
        mutants: the mutants to try.
        all: the number of changes of each package.
        reached: the number of those in functions that a unit test of the packages reaches.
    """

    mutants: list[Mutant]
    all: dict[str, int]
    reached: dict[str, int]


def sample(root: Path, size: int) -> Sample:
    """The sample of each package: so many of the reached mutants, those with the first orders.

    Args:
        root: the folder with the mutated package `asya`; mutmut's statistics are beside it.
        size: the most mutants of a package.
    """
    statistics = json.loads((root.parent / "mutmut-stats.json").read_text(encoding="utf-8"))
    functions = {name for name, tests in statistics["tests_by_mangled_function_name"].items() if tests}
    chosen = Sample([], {}, {})
    for package in PACKAGES:
        files = sorted((root / "asya" / package).rglob("*.py"))
        distinct = {mutant.change: mutant for file in files for mutant in _mutants(root, file)}
        reached = [each for each in distinct.values() if each.name.rpartition("__mutmut_")[0] in functions]
        chosen.all[package], chosen.reached[package] = len(distinct), len(reached)
        chosen.mutants.extend(heapq.nsmallest(size, reached, key=lambda mutant: mutant.change.order))
    return chosen


def survivors(root: Path, mutants: list[Mutant]) -> list[Mutant]:
    """The mutants that no test has found.

    Raises:
        RuntimeError: mutmut has no result of a mutant.
    """
    codes: dict[str, int | None] = {}
    for file in (root / "asya").rglob("*.py.meta"):
        codes |= json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
    if open_names := [mutant.name for mutant in mutants if codes.get(mutant.name) is None]:
        raise RuntimeError(f"mutmut has no result of {len(open_names)} mutants, such as {open_names[0]}")
    return [mutant for mutant in mutants if codes[mutant.name] in _SURVIVED]


def _mutants(root: Path, file: Path) -> Iterator[Mutant]:
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    text = file.read_text(encoding="utf-8")
    # What people read is recorded elsewhere; a text in other letters says nothing about the code.
    blank = {name: ast.dump(node) for name, node in _functions(_Blank().visit(ast.parse(text)))}
    functions = dict(_functions(ast.parse(text)))
    lines = {name: ast.unparse(node).splitlines() for name, node in functions.items() if name.endswith("__mutmut_orig")}
    for name, node in functions.items():
        function = name.rpartition("__mutmut_")[0]
        original = f"{function}__mutmut_orig"
        if name == original or blank[name] == blank[original]:
            continue
        removed, added = _difference(lines[original], ast.unparse(node).splitlines())
        place = f"{module}.{function.removeprefix('x').removeprefix('_').replace(_MARK, '.').lstrip('.')}"
        yield Mutant(f"{module}.{name}", module.split(".")[1], Change(place, removed, added))


def _functions(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions that mutmut has written, by their names; all get the same one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _NAME.fullmatch(node.name):
            name, node.name = node.name, "changed"
            yield name, node


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """The lines that differ, without those that only move."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = [(before[start:end], after[begin:until]) for kind, start, end, begin, until in blocks if kind != "equal"]
    removed, added = ("\n".join(line.strip() for pair in changed for line in pair[side]) for side in (0, 1))
    return removed, added


class _Blank(ast.NodeTransformer):
    """Makes one value of all texts, of their templates, and of None, which may stand in the place of a text."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if node.value is None or isinstance(node.value, str | bytes) else node

    def visit_JoinedStr(self, _: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("")
