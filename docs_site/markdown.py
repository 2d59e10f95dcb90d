"""Turns Markdown as GitHub reads it into Markdown as the site generator (Python-Markdown) reads it.

Differences: the anchors of headings, the indentation of list items, the titles of code blocks, and escaped pipes in code.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

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
