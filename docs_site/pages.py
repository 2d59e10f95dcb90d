"""Collects the pages of the site with their navigation, and rewrites their links and their Markdown.

GitHub and the site generator (Python-Markdown) read Markdown differently.
"""

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^ *(```+|~~~+)")
_HEADING = re.compile(r"^(#{1,6}) (.+)$")
_ITEM = re.compile(r"^( *)([-*]|\d+\.) +")
_INFO = re.compile(r"^( *(?:```+|~~~+)\w+) +([^\s{=]+).*$")
_CELL_CODE = re.compile(r"`[^`]*`")


def anchor(heading: str, counts: Counter[str]) -> str:
    """Return the anchor that GitHub gives a heading; a repeated one gets a number."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    counts[plain] += 1
    return plain if counts[plain] == 1 else f"{plain}-{counts[plain] - 1}"


def convert(text: str) -> str:
    """Convert a page."""
    counts: Counter[str] = Counter()
    lines = []
    for line, in_code in _with_fences(_indented_by_four(text.splitlines())):
        if in_code:
            # A word after the language may name the file; others are marks for tests. GitHub hides both.
            lines.append(_INFO.sub(_title, line))
        elif heading := _HEADING.match(line):
            lines.append(f"{line} {{#{anchor(heading[2], counts)}}}")
        elif line.lstrip().startswith("|"):
            lines.append(_CELL_CODE.sub(lambda code: code[0].replace(r"\|", "|"), line))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _title(info: re.Match[str]) -> str:
    return f'{info[1]} title="{info[2]}"' if "." in info[2] else info[1]


def outside_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a page, and whether each belongs to a code block."""
    return _with_fences(text.splitlines())


def _with_fences(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if fence:
            yield line, True
            if match and match[1].startswith(fence) and line.strip() == match[1]:
                fence = ""
        else:
            fence = match[1] if match else ""
            yield line, bool(fence)


def _indented_by_four(lines: Iterable[str]) -> Iterator[str]:
    """Indent what belongs to a list item by four spaces for each level; GitHub takes the width of the marker."""
    levels: list[int] = []
    previous = ""
    for line, in_code in _with_fences(lines):
        if not line.strip():
            yield line
            previous = ""
            continue
        width = len(line) - len(line.lstrip())
        while levels and width < levels[-1]:
            # A paragraph may continue without indentation; a new block at a lower level ends the item.
            levels.pop()
        item = None if in_code else _ITEM.match(line)
        depth = len(levels)
        rest = width - (levels[-1] if levels else 0)
        if item and depth == 0 and previous.strip() and not previous.startswith(" ") and not _ITEM.match(previous):
            yield ""
        yield " " * (4 * depth + rest) + line.lstrip()
        if item:
            levels.append(len(item[0]))
        previous = line


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


PROJECT_PAGES = (
    Page("Overview", "README.md"),
    Page("Contributing", "CONTRIBUTING.md"),
    Page("Security policy", "SECURITY.md"),
    Page("Changelog", "CHANGELOG.md"),
)
"""Pages in the root of the repository; the site has them in its folder `project`."""

# A code span, or a link: what looks like a link inside of code is none.
_LINK = re.compile(r"`[^`]+`|(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")


class MissingTargetError(Exception):
    """A page links to a file that does not exist."""


def site_paths(root: Path) -> dict[str, str]:
    """Return the path in the site of each page and picture, by its path in the repository."""
    docs = root / "docs"
    paths = {
        path.relative_to(root).as_posix(): path.relative_to(docs).as_posix().replace("README.md", "index.md")
        for path in sorted(docs.rglob("*"))
        if path.is_file()
    }
    return paths | {page.path: f"project/{page.path.lower()}" for page in PROJECT_PAGES if (root / page.path).is_file()}


def rewrite_links(text: str, source: str, paths: Mapping[str, str], root: Path) -> str:
    """Rewrite the relative links of a page.

    Args:
        source: the path of the page in the repository.
        paths: the paths in the site, from `site_paths`.

    Raises:
        MissingTargetError: a link leads to no file of the repository.
    """

    def rewrite(link: re.Match[str]) -> str:
        kind, label, target, fragment = link[1], link[2], link[3], link[4] or ""
        if not target:  # code, or a link within the page
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in paths:
            to = posixpath.relpath(paths[path], posixpath.dirname(paths[source]) or ".")
            return f"{kind}[{label}]({to}{fragment})"
        if not (root / path).exists():
            raise MissingTargetError(f"{source}: the link [{label}]({target}) leads to no file; correct its path")
        return label if label.strip("`") == path else f"{label} (`{path}`)"

    # A link may wrap: whole runs of lines outside of code blocks are rewritten at once.
    parts: list[tuple[list[str], bool]] = []
    for line, in_code in outside_code(text):
        if not parts or parts[-1][1] != in_code:
            parts.append(([], in_code))
        parts[-1][0].append(line)
    return "\n".join("\n".join(lines) if in_code else _LINK.sub(rewrite, "\n".join(lines)) for lines, in_code in parts)
