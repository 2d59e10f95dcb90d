"""The documentation: every link, and every file of the source that it names, is there."""

import re
from pathlib import Path

import pytest

from tests.paths import PROJECT

PAGES = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *sorted((PROJECT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
SOURCE = re.compile(r"`((?:functions|spark_jobs|infra|asya_cli|tests|scripts|events)/[^`<:]+)(?:::\w+)?`")
ALTERNATIVES = re.compile(r"\{([^}]+)\}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_the_source_files_that_are_named_exist(page: Path) -> None:
    named = [path for text in SOURCE.findall(page.read_text()) for path in alternatives(text)]
    missing = [path for path in named if not list(PROJECT.glob(path.rstrip("/")))]
    assert not missing


def test_every_page_can_be_found_from_the_index() -> None:
    index = (PROJECT / "docs" / "README.md").read_text()
    assert [
        page.name for page in (PROJECT / "docs").glob("*.md") if page.name not in index and page.name != "README.md"
    ] == []
    decisions = PROJECT / "docs" / "decisions"
    listed = (decisions / "README.md").read_text()
    assert [
        page.name for page in decisions.glob("*.md") if f"]({page.name})" not in listed and page.name != "README.md"
    ] == []


def alternatives(path: str) -> list[str]:
    """`a/{b,c}.py` → `a/b.py`, `a/c.py`."""
    match = ALTERNATIVES.search(path)
    if match is None:
        return [path]
    return [
        each
        for choice in match[1].split(",")
        for each in alternatives(path[: match.start()] + choice + path[match.end() :])
    ]
