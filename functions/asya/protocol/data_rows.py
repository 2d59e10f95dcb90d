"""The rows of a file of CSV or JSON Lines (`protocol §1.references.rows`).

Standard library only, as `asya.data` has it.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from asya.protocol.numbers import read_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROW_LIMIT = 2**20
"""Bytes of a row, the end of its line included."""
Format = Literal["csv", "jsonl"]
_FORMATS: dict[str, Format] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CURSOR = re.compile(r"(?P<offset>[1-9]\d{0,17})-(?P<line>[1-9]\d{0,17})-(?P<version>.+)", re.ASCII)
_QUOTE = ord('"')
_QUOTED = re.compile(rb'(?:[^"]++|"")*+')
# What `gzip` raises.
_DAMAGES = (EOFError, gzip.BadGzipFile, zlib.error)
_TOO_LONG = f"the row has more than {ROW_LIMIT:,} bytes"


@dataclass(frozen=True, slots=True)
class DataRow:
    """A row of a file in the data of a mesh.

    Attributes:
        reference: The file.
        line: Its first line in the file, from 1.
        cursor: What `rows` takes as `after` for the rows after this one.
        problem: Why it has no value; None if it has one.
    """

    reference: str
    line: int
    cursor: str
    problem: str | None
    _value: object = field(repr=False)

    @property
    def value(self) -> Any:
        """The JSON value of the line, or the texts of a row of CSV by their columns.

        Raises:
            ValueError: the row is malformed; the error has file and line.
        """
        if self.problem is not None:
            raise ValueError(f"{self.reference}:{self.line}: {self.problem}")
        return self._value


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row begins: bytes of the uncompressed file before it, and the number of its first line."""

    offset: int = 0
    line: int = 1


def format_of(reference: str, given: str | None) -> Format:
    """The format of a file: the given one, or that of its name.

    Raises:
        ValueError: neither says it.
    """
    if given is None:
        name = reference.lower().removesuffix(".gz")
        found = next((form for suffix, form in _FORMATS.items() if name.endswith(suffix)), None)
        if found:
            return found
    for form in _FORMATS.values():
        if form == given:
            return form
    wrong = f"{given!r} is no format of rows" if given else f"the name {reference[:200]!r} tells no format of rows"
    raise ValueError(f"{wrong}; give format='csv' or format='jsonl'")


class Lines:
    """Reads lines of a file, and knows its place in it.

    Args:
        reference: the file, for rows and errors.
        version: its version, for cursors.
        stream: its uncompressed content, at the beginning.
    """

    def __init__(self, reference: str, version: str, stream: BinaryIO) -> None:
        self.reference = reference
        self.version = version
        self.place = Place()
        self._stream = stream

    def go_to(self, place: Place) -> None:
        """Go on at the beginning of a row.

        Raises:
            ValueError: no line begins there.
        """
        try:
            self._stream.seek(place.offset - 1)
            before = self._stream.read(1)
            is_row = before == b"\n" or (before and not self._stream.read(1))
        except _DAMAGES as error:
            raise self._damaged(error) from error
        if not is_row:
            raise ValueError(f"{self.reference}: the cursor is of no row of this file")
        self.place = place

    def piece(self) -> bytes:
        """The next line, or a part of it with as many bytes as a row may have; empty at the end.

        Raises:
            ValueError: the compressed data is damaged.
        """
        try:
            piece = self._stream.readline(ROW_LIMIT)
        except _DAMAGES as error:
            raise self._damaged(error) from error
        self.place = Place(self.place.offset + len(piece), self.place.line + piece.endswith(b"\n"))
        return piece

    def row(self, line: int, value: object, problem: str | None) -> DataRow:
        """A row that ends here."""
        cursor = f"{self.place.offset}-{self.place.line}-{self.version}"
        return DataRow(self.reference, line, cursor, problem, value)

    def error(self, line: int, problem: str) -> ValueError:
        """The error of a file with a problem after which no row is known."""
        return ValueError(f"{self.reference}:{line}: {problem}")

    def _damaged(self, error: Exception) -> ValueError:
        return self.error(self.place.line, f"the compressed data is damaged: {error}")


def read_rows(lines: Lines, form: Format, after: object, columns: tuple[str, ...]) -> Iterator[DataRow]:
    """The rows of a file from its beginning, or after a cursor.

    Args:
        lines: the file.
        form: its format.
        after: the cursor; nothing for the beginning.
        columns: those of a CSV file whose first row does not name them.

    Raises:
        ValueError: as `asya.data.rows` says.
    """
    if form == "csv" and not columns:
        columns = _columns(lines)
    if after:
        lines.go_to(_read_cursor(after, lines))
    yield from _csv(lines, columns) if form == "csv" else _json_lines(lines)


def _read_cursor(cursor: object, lines: Lines) -> Place:
    match = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if match is None:
        raise ValueError(f"{lines.reference}: {str(cursor)[:200]!r} is not the cursor of a row")
    if match["version"] != lines.version:
        raise ValueError(f"{lines.reference} has changed since the cursor was given; read it from its beginning")
    return Place(int(match["offset"]), int(match["line"]))


def check_columns(columns: Sequence[str], form: Format) -> tuple[str, ...]:
    """The columns that a caller names.

    Raises:
        ValueError: one is empty or repeated, or the file is not CSV.
    """
    if columns and form != "csv":
        raise ValueError("columns are of CSV files; rows of JSON Lines name their own")
    problem = _problem_of(columns)
    if problem:
        raise ValueError(f"columns={columns!r}: {problem}")
    return tuple(columns)


def _columns(lines: Lines) -> tuple[str, ...]:
    """The columns of a CSV file, from its beginning; empty for a file without rows."""
    for row in _records(lines):
        problem = row.problem or _problem_of(row.texts)
        if problem:
            raise lines.error(row.line, f"{problem}; the first row names the columns")
        return row.texts
    return ()


def _problem_of(columns: Sequence[str]) -> str | None:
    if isinstance(columns, str):
        return "it is one text; give a list of names"
    if "" in columns:
        return f"column {columns.index('') + 1} has no name"
    if (repeated := _repeated(columns)) is not None:
        return f"two columns have the name {repeated!r}"
    if any("\r" in name for name in columns):
        return "a column has a carriage return in its name; lines end with a line feed"
    return None


def _csv(lines: Lines, columns: tuple[str, ...]) -> Iterator[DataRow]:
    for row in _records(lines):
        problem, value = row.problem, None
        if problem is None and len(row.texts) != len(columns):
            problem = f"the row has {len(row.texts)} fields, and the file {len(columns)} columns"
        if problem is None:
            value = dict(zip(columns, row.texts, strict=True))
        yield lines.row(row.line, value, problem)


def _json_lines(lines: Lines) -> Iterator[DataRow]:
    while True:
        start = lines.place
        piece = _first_piece(lines)
        if lines.place == start:
            return
        if lines.place.line == start.line and _skip_line(lines):
            yield lines.row(start.line, None, _TOO_LONG)
        elif text := _content(piece):
            yield lines.row(start.line, *_json(text))


def _first_piece(lines: Lines) -> bytes:
    """The first piece of a row, without the byte order mark of its file."""
    is_first = lines.place.offset == 0
    piece = lines.piece()
    return piece.removeprefix(_BYTE_ORDER_MARK) if is_first else piece


def _skip_line(lines: Lines) -> bool:
    """Read to the end of the line; whether there was more of it."""
    start = lines.place
    while lines.piece() and lines.place.line == start.line:
        pass
    return lines.place != start


def _content(line: bytes) -> bytes:
    """A line without its end."""
    return line[:-1].removesuffix(b"\r") if line.endswith(b"\n") else line


def _json(text: bytes) -> tuple[object, str | None]:
    try:
        content = text.decode("utf-8")
        return json.loads(content, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object), None
    except UnicodeDecodeError as error:
        return None, f"the row is not UTF-8: {error.reason}"
    except json.JSONDecodeError as error:
        return None, f"the row is not JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return None, f"the row is not JSON: {error}"


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no value of JSON")


def _finite(text: str) -> float:
    number = read_number(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError(f"an object has the key {_repeated(name for name, _ in members)!r} twice")
    return found


def _repeated(names: Iterable[str]) -> str | None:
    """The first name that comes more than once, shortened for an error."""
    return next((name[:200] for name, count in Counter(names).items() if count > 1), None)


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    texts: tuple[str, ...]
    problem: str | None


def _records(lines: Lines) -> Iterator[_Row]:
    while True:
        start = lines.place
        piece = _first_piece(lines)
        if lines.place == start:
            return
        if lines.place.line > start.line and b'"' not in piece:
            if content := _content(piece):
                yield _row(start.line, content.split(b","), None)
            continue
        record = _Record()
        while piece and not record.feed(piece):
            piece = lines.piece()
        if record.is_quoted:
            raise lines.error(start.line, "the file does not close a quote that begins in this row")
        if record.size:
            yield _row(start.line, record.fields, record.problem)


def _row(line: int, fields: list[bytes], problem: str | None) -> _Row:
    try:
        return _Row(line, tuple(each.decode("utf-8") for each in fields) if problem is None else (), problem)
    except UnicodeDecodeError as error:
        return _Row(line, (), f"the row is not UTF-8: {error.reason}")


class _Record:
    """A row of CSV that is read piece by piece, because it has quotes, is the last of the file, or is too long."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._fields: list[bytes] = []
        self._problem: str | None = None
        self._state: Literal["start", "plain", "quoted", "closed"] = "start"
        self.size = 0

    @property
    def is_quoted(self) -> bool:
        """Whether the row goes on, because a quote is open."""
        return self._state == "quoted"

    @property
    def problem(self) -> str | None:
        """Why the row is malformed."""
        return _TOO_LONG if self.size > ROW_LIMIT else self._problem

    @property
    def fields(self) -> list[bytes]:
        """The fields of a row that has ended."""
        return [*self._fields, b"".join(self._parts)]

    def feed(self, piece: bytes) -> bool:
        """Read a piece, and return whether the row ends with it."""
        self.size += len(piece)
        position, end = 0, len(piece)
        while position < end:
            if self._state == "quoted":
                position = self._quoted(piece, position)
            elif self._state == "closed":
                position = self._closed(piece, position)
            elif self._state == "start" and piece[position] == _QUOTE:
                self._state, position = "quoted", position + 1
            else:
                position = self._plain(piece, position)
        return piece.endswith(b"\n") and self._state != "quoted"

    def _quoted(self, piece: bytes, position: int) -> int:
        match = _QUOTED.match(piece, position)
        assert match is not None  # it matches nothing, too
        self._add(match[0].replace(b'""', b'"'))
        if match.end() == len(piece):
            return len(piece)
        self._state = "closed"
        return match.end() + 1

    def _closed(self, piece: bytes, position: int) -> int:
        if piece[position] == _QUOTE:
            self._add(b'"')
            self._state = "quoted"
            return position + 1
        rest = piece.find(b",", position)
        end = len(piece) if rest < 0 else rest
        if _content(piece[position:end]):
            self._problem = "text follows the closing quote of a field"
            self._state = "plain"
        if rest >= 0:
            self._end_field()
            return end + 1
        return end

    def _plain(self, piece: bytes, position: int) -> int:
        end = piece.find(b",", position)
        if end < 0:
            self._add(_content(piece[position:]))
            self._state = "plain"
            return len(piece)
        self._add(piece[position:end])
        self._end_field()
        return end + 1

    def _end_field(self) -> None:
        if self.size <= ROW_LIMIT:
            self._fields.append(b"".join(self._parts))
        self._parts.clear()
        self._state = "start"

    def _add(self, part: bytes) -> None:
        if self.size <= ROW_LIMIT:
            self._parts.append(part)
