"""Tests that the links, source files and `asya` commands in the documentation exist."""

import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from asya_cli.main import app
from tests.paths import PROJECT

DOCS = PROJECT / "docs"
PAGES = [
    *sorted(PROJECT.glob("*.md")),
    *(page for folder in (DOCS, PROJECT / "events", PROJECT / "asya_cli") for page in sorted(folder.rglob("*.md"))),
]
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SOURCE = re.compile(r"`((?:functions|spark_jobs|infra|asya_cli|tests|scripts|events)/[^`<:]+)(?:::\w+)?`")
ALTERNATIVES = re.compile(r"\{([^}]+)\}")
SHELL = re.compile(r"^ *```sh[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\basya ([^\n()|;&]+)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


@each_page
def test_link_targets_exist(page: Path) -> None:
    missing = []
    for path, anchor in LINK.findall(CODE.sub("", page.read_text())):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(f"{path}#{anchor}")
    assert not missing


@each_page
def test_named_source_files_exist(page: Path) -> None:
    paths = [path for text in SOURCE.findall(page.read_text()) for path in alternatives(text)]
    missing = [path for path in paths if not list(PROJECT.glob(path.rstrip("/")))]
    assert not missing


@each_page
def test_asya_commands_parse(page: Path) -> None:
    for block in SHELL.findall(page.read_text()):
        for words in COMMAND.findall(block):
            parse(shlex.split(words, comments=True))


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    pages = [page for page in DOCS.rglob("*") if page.suffix in (".md", ".json") and page.parent.name != "decisions"]
    assert [
        page.name for page in pages if page.name != "README.md" and f"({page.relative_to(DOCS)})" not in index
    ] == []


def test_the_decisions_list_every_decision() -> None:
    decisions = DOCS / "decisions"
    index = (decisions / "README.md").read_text()
    assert [
        page.name for page in decisions.glob("*.md") if f"]({page.name})" not in index and page.name != "README.md"
    ] == []


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings in GitHub's form; a repeated heading gets a number."""
    counts: Counter[str] = Counter()
    page_anchors = set()
    for heading in HEADING.findall(re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        page_anchors.add(f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
        counts[anchor] += 1
    return page_anchors


def alternatives(path: str) -> list[str]:
    """Expands braces: `a/{b,c}.py` → `a/b.py`, `a/c.py`."""
    match = ALTERNATIVES.search(path)
    if match is None:
        return [path]
    return [
        alternative
        for choice in match[1].split(",")
        for alternative in alternatives(path[: match.start()] + choice + path[match.end() :])
    ]


def parse(words: list[str]) -> None:
    """Parses the arguments of a command without running it; wrong arguments raise a usage error."""
    command = _command()
    context = command.make_context("asya", [], resilient_parsing=True)
    while isinstance(command, TyperGroup):
        name, subcommand, words = command.resolve_command(context, words)
        if subcommand is None:
            raise ValueError(f"No such command: {' '.join(words)}")
        command, context = subcommand, subcommand.make_context(name, [], parent=context, resilient_parsing=True)
    command.make_context(context.info_name, words)


@cache
def _command() -> Any:
    """The command of `asya`, which takes a while to build."""
    return typer.main.get_command(app)


@pytest.mark.parametrize("line", ["no-such-command", "status", "status ID --no-such-option", "dlq no-such-command"])
def test_wrong_commands_do_not_parse(line: str) -> None:
    with pytest.raises(Exception, match=r"No such|Missing"):
        parse(line.split())
