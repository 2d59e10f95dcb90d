"""Derives the navigation of the site from `docs/README.md`: a section for each heading, a page for each row."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SECTION = re.compile(r"^## (.+)$")
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+\.md)\)")


@dataclass(frozen=True)
class Page:
    """An entry of the navigation: its title, and its path in the site."""

    title: str
    path: str


Sections = dict[str, list[Page]]


def read_index(text: str) -> Sections:
    """Read the pages of each section in the order of the index; a row without a page is skipped."""
    sections: Sections = {}
    pages: list[Page] = []
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            pages = sections.setdefault(heading[1], [])
        elif row := _ROW.match(line):
            pages.append(Page(row[1], row[2].replace("README.md", "index.md")))
    return {title: pages for title, pages in sections.items() if pages}


def as_toml(sections: Mapping[str, Sequence[Page]]) -> str:
    """Write the navigation as a TOML value; JSON strings are TOML strings."""

    def entry(page: Page) -> str:
        return f"{{ {json.dumps(page.title)} = {json.dumps(page.path)} }}"

    lines = ["[", '  { "Start" = "index.md" },']
    for title, pages in sections.items():
        lines += [f"  {{ {json.dumps(title)} = [", *(f"    {entry(page)}," for page in pages), "  ] },"]
    return "\n".join([*lines, "]"])
