"""Adds an entry to the text of a mesh file. Comments, order and spacing of the rest stay, because the rest is not written again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INDENT = "  "


class NotEditableError(Exception):
    """The text is written in a way in which no entry can be added, such as all actors in braces."""


@dataclass(frozen=True)
class Entry:
    """An entry of a section.

    Attributes:
        section: the section, such as `actors`.
        name: the key, such as `check-orders`.
        lines: the lines of its value, without indentation.
    """

    section: str
    name: str
    lines: tuple[str, ...]

    def text(self, indent: str = _INDENT) -> str:
        """Return the lines of the entry within its section."""
        return "\n".join([f"{indent}{self.name}:", *(f"{indent}{_INDENT}{line}" for line in self.lines)])

    def value(self) -> Any:
        """Return the value with each scalar as its text."""
        return _loaded("\n".join(self.lines))


def line_of(text: str, section: str, name: str) -> int | None:
    """Return the number of the line with an entry of a section; None if there is no such entry."""
    node = _root(text).get(section)
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if key.value == name:
                return int(key.start_mark.line) + 1
    return None


def with_entry(text: str, entry: Entry) -> str:
    """Return the text of a mesh file with one more entry, at the end of its section.

    Raises:
        NotEditableError: The section is in braces, or the result would have another meaning than the text and the entry.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    section = _root(text).get(entry.section)
    if section is None:
        lines += ["", f"{entry.section}:", entry.text()]
    elif isinstance(section, yaml.MappingNode) and section.value and not section.flow_style:
        indent = " " * section.value[0][0].start_mark.column
        place = _end(section, lines, len(indent))
        spaced = [""] if _is_spaced(section, lines) else []
        lines[place:place] = [*spaced, entry.text(indent)]
    else:
        raise NotEditableError
    edited = "\n".join(lines) + "\n"
    if not _adds_only(text, edited, entry):
        raise NotEditableError
    return edited.replace("\n", ending)


def _adds_only(before: str, after: str, entry: Entry) -> bool:
    """Whether the content is that of before and the entry."""
    expected, content = _content(before), _content(after)
    expected[entry.section] = {**(expected.get(entry.section) or {}), entry.name: entry.value()}
    return content == expected


def _content(text: str) -> dict[str, Any]:
    try:
        content = _loaded(text)
    except yaml.YAMLError as error:
        raise NotEditableError from error
    return dict(content) if isinstance(content, dict) else {}


def _loaded(text: str) -> Any:
    """Load YAML and keep the text of each scalar: an invalid date loads, and 3.10 stays 3.10."""
    return yaml.load(text, Loader=yaml.BaseLoader)


def _root(text: str) -> Mapping[str, yaml.Node]:
    """Return the nodes of the keys of a mesh file."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise NotEditableError
    return {key.value: value for key, value in node.value}


def _end(section: yaml.MappingNode, lines: list[str], column: int) -> int:
    """Return the number of the line behind a section: behind its last value, and behind comments that are as deep as its keys."""
    place = max(_last_lines(section)) + 1
    following = place
    while following < len(lines) and (not lines[following].strip() or _is_comment(lines[following], column)):
        following += 1
        if lines[following - 1].strip():
            place = following
    return place


def _is_comment(line: str, column: int) -> bool:
    return line.lstrip().startswith("#") and len(line) - len(line.lstrip()) >= column


def _last_lines(node: yaml.Node) -> Iterator[int]:
    """Yield the last line of each value. The end of a block is known by its values only: PyYAML puts it behind comments."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        for key, value in node.value:
            yield from _last_lines(key)
            yield from _last_lines(value)
    elif isinstance(node, yaml.SequenceNode) and not node.flow_style:
        for value in node.value:
            yield from _last_lines(value)
    else:
        end = node.end_mark
        # A block scalar (`|`) ends at the beginning of the next line.
        yield end.line - 1 if end.column == 0 and end.line > node.start_mark.line else end.line


def _is_spaced(section: yaml.MappingNode, lines: list[str]) -> bool:
    """Whether a blank line is between the entries; behind a single one there is one if it has several lines."""
    if len(section.value) < 2:
        return bool(max(_last_lines(section)) > section.value[0][0].start_mark.line)
    above = section.value[-1][0].start_mark.line - 1
    while above > 0 and lines[above].lstrip().startswith("#"):
        above -= 1
    return not lines[above].strip()
