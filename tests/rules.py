"""Maps each rule of the protocol to the tests that show it.

docs/protocol.md states the rules, as list items that start with a key. A test names the rules that it shows:

    @pytest.mark.rule("1.shift", "5.8")

    python -m tests.rules             print the map
    python -m tests.rules --missing   list the rules without a test; the exit code is 1 if there is one
    python -m tests.rules --write     write docs/reference/rules.md, as `make rules` does
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.paths import PROJECT

PROTOCOL = PROJECT / "docs" / "protocol.md"
PAGE = PROJECT / "docs" / "reference" / "rules.md"
TESTS = PROJECT / "tests"

HEADING = re.compile(r"^(#{2,}) (.+)$")
RULE = re.compile(r"^- \*\*§(\d+\.[\w.-]+)\*\* — (.*)$")
FENCE = "```"
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"*\[])")
LINK_TARGET = re.compile(r"\]\((?!https?:)([^)]+)\)")
INTRODUCTION = """\
Each rule of [the protocol](../protocol.md) with its first sentence and the tests that show it. The tests carry the
keys of their rules as markers: `@pytest.mark.rule("1.shift")`.
"""
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Rule:
    """One rule as the protocol states it."""

    key: str
    section: str
    """The heading of its section, such as `5. The sidecar, in order`."""
    anchor: str
    """The fragment that leads to the nearest heading."""
    line: int
    text: str

    @property
    def first_sentence(self) -> str:
        return SENTENCE_END.split(self.text, maxsplit=1)[0]


@dataclass(frozen=True)
class Marker:
    """A use of the marker `rule`; without a test if it is not the decorator of a test function."""

    file: str
    line: int
    test: str | None
    keys: tuple[str | None, ...]
    """None stands for an argument that is not a string literal."""

    @property
    def reference(self) -> str:
        return f"{self.file}::{self.test}"


def read_rules(protocol: str) -> list[Rule]:
    """Read the rules in the order of the page."""
    rules: list[Rule] = []
    section, anchor, in_example = "", "", False
    anchors: Counter[str] = Counter()
    lines = protocol.splitlines()
    for number, line in enumerate(lines, start=1):
        in_example ^= line.startswith(FENCE)
        if in_example:
            continue
        if heading := HEADING.match(line):
            anchor = _anchor(heading[2], anchors)
            section = heading[2] if heading[1] == "##" else section
        elif rule := RULE.match(line):
            text = " ".join([rule[2], *_continuation(lines[number:])])
            rules.append(Rule(rule[1], section, anchor, number, text))
    return rules


def _anchor(heading: str, anchors: Counter[str]) -> str:
    """The fragment that GitHub gives a heading; repeated headings are numbered."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    anchors[plain] += 1
    return plain if anchors[plain] == 1 else f"{plain}-{anchors[plain] - 1}"


def _continuation(lines: Iterable[str]) -> Iterator[str]:
    """The indented lines that belong to a list item."""
    for line in lines:
        if not line.startswith("  ") or line.lstrip().startswith(("- ", FENCE)):
            return
        yield line.strip()


def read_markers(folder: Path, root: Path = PROJECT) -> list[Marker]:
    """Read the markers of all modules in a folder, in the order of paths and lines."""
    return [
        marker
        for path in sorted(folder.rglob("*.py"))
        if "mark.rule" in (source := path.read_text(encoding="utf-8"))
        for marker in markers_in(source, path.relative_to(root).as_posix())
    ]


def markers_in(source: str, file: str) -> list[Marker]:
    """Read the markers of one module from its syntax tree."""
    nodes = list(ast.walk(ast.parse(source)))
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    tests = {
        id(decorator): node.name
        for node in nodes
        if isinstance(node, Functions) and node.name.startswith("test_")
        for decorator in node.decorator_list
    }
    markers = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.rule":
            call = calls.get(id(node))
            keys = tuple(_literal(argument) for argument in call.args) if call else ()
            markers.append(Marker(file, node.lineno, tests.get(id(call or node)), keys))
    return sorted(markers, key=lambda marker: marker.line)


def _literal(argument: ast.expr) -> str | None:
    value = argument.value if isinstance(argument, ast.Constant) else None
    return value if isinstance(value, str) else None


def references_by_rule(markers: Iterable[Marker]) -> dict[str, list[str]]:
    """The references `path::name` of the tests of each key."""
    tests: dict[str, list[str]] = {}
    for marker in markers:
        for key in marker.keys:
            if marker.test is not None and key is not None and marker.reference not in tests.setdefault(key, []):
                tests[key].append(marker.reference)
    return tests


def rules_without_test(rules: Iterable[Rule], markers: Iterable[Marker]) -> list[Rule]:
    tests = references_by_rule(markers)
    return [rule for rule in rules if rule.key not in tests]


def problems(rules: list[Rule], markers: list[Marker]) -> list[str]:
    """Everything that is wrong with the rules and the markers, as lines with place, fault and remedy."""
    known: dict[str, Rule] = {}
    found: list[str] = []
    for rule in rules:
        place = f"docs/protocol.md:{rule.line}: §{rule.key}"
        if first := known.get(rule.key):
            found.append(f"{place} stands in line {first.line} already; choose another key")
        known.setdefault(rule.key, rule)
        if rule.section.partition(".")[0] != rule.key.partition(".")[0]:
            found.append(f"{place} stands in section {rule.section!r}; move it to its own section, or change its key")
    found += [
        f"docs/protocol.md:{rule.line}: §{rule.key} has no test; mark one with @pytest.mark.rule({rule.key!r})"
        for rule in rules_without_test(rules, markers)
    ]
    for marker in markers:
        place = f"{marker.file}:{marker.line}:"
        if marker.test is None:
            found.append(f"{place} the marker is not the decorator of a test function; move it to one")
        if not marker.keys or None in marker.keys:
            found.append(f"{place} the marker needs the keys of rules as string literals")
        found += [
            f"{place} §{key} is no rule of docs/protocol.md; correct the key, or add the rule"
            for key in marker.keys
            if key is not None and key not in known
        ]
    return found


def as_page(rules: list[Rule], markers: list[Marker]) -> str:
    """The map as a Markdown page with a table for each section."""
    tests = references_by_rule(markers)
    lines = [
        "<!-- Generated by `make rules`; do not edit. -->",
        "",
        "# Rules and their tests",
        "",
        INTRODUCTION.rstrip(),
    ]
    section = None
    for rule in rules:
        if rule.section != section:
            section = rule.section
            lines += ["", f"## {section}", "", "| rule | first sentence | tests |", "|---|---|---|"]
        references = "<br>".join(f"`{test}`" for test in tests.get(rule.key, [])) or "none"
        sentence = _for_a_cell(rule.first_sentence)
        lines.append(f"| [§{rule.key}](../{PROTOCOL.name}#{rule.anchor}) | {sentence} | {references} |")
    return "\n".join(lines) + "\n"


def _for_a_cell(text: str) -> str:
    """Text of the protocol for a table of a page one folder below."""

    def below(link: re.Match[str]) -> str:
        return f"](../{PROTOCOL.name if link[1].startswith('#') else ''}{link[1]})"

    return LINK_TARGET.sub(below, text).replace("|", r"\|")


def as_text(rules: list[Rule], markers: list[Marker]) -> str:
    """The map as text: each rule, and below it its tests."""
    tests = references_by_rule(markers)
    lines: list[str] = []
    for rule in rules:
        lines.append(f"§{rule.key} — {rule.first_sentence}")
        lines += [f"    {test}" for test in tests.get(rule.key, ["no test"])]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rules", description="Maps each rule to its tests.")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--missing", action="store_true", help="list the rules without a test; exit 1 if there is one")
    output.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(PROJECT)}")
    options = parser.parse_args(arguments)
    rules, markers = read_rules(PROTOCOL.read_text(encoding="utf-8")), read_markers(TESTS)
    if options.missing:
        missing = rules_without_test(rules, markers)
        print("\n".join(f"§{rule.key} — {rule.first_sentence}" for rule in missing) or "every rule has a test")
        return 1 if missing else 0
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(as_page(rules, markers), encoding="utf-8")
    else:
        print(as_text(rules, markers))
    found = problems(rules, markers)
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
