"""The map of rules: every rule once, each beside tests that are there."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.paths import PROJECT

PAGE = PROJECT / "docs" / "rules.md"
NOT_SHOWN = "Not shown yet"
AT_LEAST = {
    "1": 23,
    "2": 12,
    "3": 16,
    "4": 21,
    "5": 29,
    "6": 18,
    "7": 8,
    "8": 16,
    "9": 21,
    "11": 29,
    "10": 26,
    "12": 10,
    "13": 41,
    "14": 15,
    "15": 18,
}
"""How many rules each section has at the least: raise a number with the rules, and lower it only with the protocol."""
REFERENCE = re.compile(r"`([^`]+)`")
KEY = re.compile(r"`§(\d+)\.[\w.-]+`")


class Rule(NamedTuple):
    """A row of a table."""

    line: int
    heading: str
    cells: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.cells[0]


def rules_of(page: str) -> list[Rule]:
    """The rows of every table, without their headings."""
    found, heading = [], ""
    for number, line in enumerate(page.splitlines(), start=1):
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("|") and not line.startswith(("|---", "| key |")):
            found.append(Rule(number, heading, tuple(cell.strip() for cell in line.strip("|").split("|"))))
    return found


RULES = rules_of(PAGE.read_text(encoding="utf-8"))
SHOWN = [rule for rule in RULES if rule.heading != NOT_SHOWN]


@cache
def functions_in(path: Path) -> frozenset[str]:
    """The test functions of a module; none if there is no such module."""
    if not path.is_file():
        return frozenset()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, functions) and each.name.startswith("test_"))


def missing(rule: Rule) -> list[str]:
    """What a rule names that is no test; the whole cell if it names nothing."""
    named = REFERENCE.findall(rule.cells[2])
    if not named:
        return [f"line {rule.line}: {rule.key} names no test: {rule.cells[2]!r}"]
    there = {reference: functions_in(PROJECT / reference.partition("::")[0]) for reference in named}
    return [
        f"line {rule.line}: {rule.key} names {reference}, which is not there"
        for reference in named
        if reference.partition("::")[2] not in there[reference]
    ]


def test_every_row_has_a_key_a_rule_and_a_third_cell() -> None:
    assert [rule for rule in RULES if len(rule.cells) != 3 or not all(rule.cells) or not KEY.fullmatch(rule.key)] == []


def test_every_rule_names_tests_that_exist() -> None:
    assert [problem for rule in SHOWN for problem in missing(rule)] == []


def test_no_key_is_there_twice() -> None:
    keys = [rule.key for rule in RULES]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


def test_rules_stand_in_their_own_section() -> None:
    headings = {rule.key: rule.heading.partition(" ")[0] for rule in SHOWN}
    assert {key: heading for key, heading in headings.items() if not key.startswith(f"`§{heading}.")} == {}


@pytest.mark.parametrize(("section", "least"), AT_LEAST.items())
def test_every_section_is_there_with_its_rules(section: str, least: int) -> None:
    assert len([rule for rule in SHOWN if rule.heading.partition(" ")[0] == section]) >= least


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        ("`tests/unit/repository/test_rules.py::test_no_key_is_there_twice`", 0),
        ("`tests/unit/repository/test_rules.py::test_that_nobody_wrote`", 1),
        ("`tests/unit/repository/test_rules.py::missing`", 1),
        ("`tests/unit/repository/test_rules.py`", 1),
        ("`tests/unit/nowhere.py::test_no_key_is_there_twice`", 1),
        ("soon", 1),
    ],
)
def test_what_is_no_test_is_told(tests: str, told: int) -> None:
    (rule,) = rules_of(f"## 1 Some\n\n| key | rule | shown by |\n|---|---|---|\n| `§1.some` | a rule | {tests} |\n")
    assert len(missing(rule)) == told
