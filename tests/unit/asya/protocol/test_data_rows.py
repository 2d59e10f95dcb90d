"""The rows of files, by texts and bytes of any kind."""

import csv
import gzip
import io
import json
import tracemalloc
from collections import deque
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asya.protocol import data_rows
from asya.protocol.data_rows import Lines, check_columns, format_of, read_rows
from asya.protocol.strict_json import encode_value

CSV_TEXTS = st.text(st.sampled_from('ab,,""\n\n é'), max_size=40)
JSON_LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [b"", b"\r", b" ", b"{", b"NaN", b"1e999", b'{"a": -Infinity}', b"\xff", b"[" * 9000, b"1" * 5000]
        ),
        st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=3).map(
            lambda value: json.dumps(value, ensure_ascii=False).encode()
        ),
    ),
    max_size=8,
)
ENDS = st.sampled_from([b"\n", b"\r\n"])
ANY_BYTES = st.lists(
    st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\xff", b"\xc3", b"\xa9", b"\xef\xbb\xbf", b"1", b"{}", b"\0"]),
    max_size=30,
).map(b"".join)


def rows(body, form, after="", columns=()):
    return list(read_rows(Lines("f", "v", io.BytesIO(body)), form, after, columns))


def rows_until_error(body, form, after="", columns=()):
    found, error = [], None
    try:
        found.extend(read_rows(Lines("f", "v", io.BytesIO(body)), form, after, columns))
    except ValueError as caught:
        error = str(caught)
    return found, error


def expected_value(line):
    """What a line of JSON Lines is; the text `malformed` if it is nothing."""

    def refuse(text):
        raise ValueError(text)

    try:
        value = json.loads(line.decode(), parse_constant=refuse)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return "malformed"
    return [value]


@pytest.mark.rule("1.references.rows", "1.references.rows.json", "1.references.rows.malformed")
@given(lines=JSON_LINES, end=ENDS, is_ended=st.booleans(), mark=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_1_a_line_of_json_is_a_row(lines, end, is_ended, mark):
    body = mark + end.join(lines) + end * is_ended
    found = rows(body, "jsonl")
    expected = {
        number: expected_value(line)
        for number, line in enumerate(body.removeprefix(mark).split(b"\n"), 1)
        if line.removesuffix(b"\r") or (line and number == body.count(b"\n") + 1)
    }
    assert {row.line: "malformed" if row.problem else [row.value] for row in found} == expected
    assert len(found) == len(expected)


@pytest.mark.rule("1.references.rows", "1.references.rows.csv")
@given(
    table=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), min_size=width, max_size=width),
            max_size=6,
        )
    ),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    is_ended=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_1_a_table_that_is_written_is_read(table, quoting, end, is_ended, mark):
    width = len(table[0]) if table else 1
    columns = [f"column {number}" for number in range(width)]
    written = io.StringIO(newline="")
    csv.writer(written, quoting=quoting, lineterminator=end).writerows([columns, *table])
    text = mark + (written.getvalue() if is_ended else written.getvalue().removesuffix(end))
    found = rows(text.encode(), "csv")
    assert [row.value for row in found] == [dict(zip(columns, row, strict=True)) for row in table]
    starts = [2, *(2 + sum(count_lines(row) for row in table[: number + 1]) for number in range(len(table)))]
    assert [row.line for row in found] == starts[: len(table)]


def count_lines(row):
    return 1 + sum(field.count("\n") for field in row)


@pytest.mark.rule("1.references.rows.csv", "1.references.rows.malformed", "1.references.rows.file")
@given(columns=st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]]), text=CSV_TEXTS)
def test_1_rows_are_where_other_readers_see_them(columns, text):
    """The reader of Python takes what is malformed; it sees the same rows."""
    found, error = rows_until_error((",".join(columns) + "\n" + text).encode(), "csv")
    reader = csv.reader(io.StringIO(text, newline=""))
    expected, line = [], 2
    for row in reader:
        if row:
            expected.append((line, row))
        line = 2 + reader.line_num
    if error:
        assert error == f"f:{expected.pop()[0]}: the file does not close a quote that begins in this row"
    assert [row.line for row in found] == [line for line, _ in expected]
    for row, (_, fields) in zip(found, expected, strict=True):
        if row.problem is None:
            assert [*row.value.values()] == fields
        else:
            assert "text follows" in row.problem or f"has {len(fields)} fields" in row.problem


@pytest.mark.rule("1.references.rows.after")
@given(body=ANY_BYTES, form=st.sampled_from(["csv", "jsonl"]), is_headed=st.booleans())
def test_1_after_each_row_come_the_others(body, form, is_headed):
    body = b"a,b\n" * is_headed + body
    whole, error = rows_until_error(body, form)
    assert [row.line for row in whole] == sorted({row.line for row in whole})
    for number, row in enumerate(whole, 1):
        assert rows_until_error(body, form, row.cursor) == (whole[number:], error)


@pytest.mark.rule("1.references.rows.malformed")
@given(body=ANY_BYTES, form=st.sampled_from(["csv", "jsonl"]), limit=st.integers(4, 12))
def test_1_a_row_that_is_too_long_hides_no_other(body, form, limit):
    body = b"a,b\n" + body
    assume(b"\n\n" not in body and b"\n\r\n" not in body)
    whole, error = rows_until_error(body, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_rows, "ROW_LIMIT", limit)
        limited, limited_error = rows_until_error(body, form)
    assert (limited_error, [row.cursor for row in limited]) == (error, [row.cursor for row in whole])
    offsets = [4 * (form == "csv"), *(int(row.cursor.split("-")[0]) for row in whole)]
    for row, expected, (start, end) in zip(limited, whole, pairwise(offsets), strict=True):
        is_too_long = end - start > limit
        assert "more than" in (row.problem or "") if is_too_long else row == expected


@pytest.mark.rule("1.references.rows.malformed")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(("size", "is_row"), [(2**20, True), (2**20 + 1, False), (3 * 2**20, False)])
@pytest.mark.parametrize("is_ended", [True, False])
def test_1_a_row_has_a_mebibyte(form, size, is_row, is_ended):
    text = b'"' + b"x" * (size - 2 - is_ended) + b'"' + b"\n" * is_ended
    [row, *others] = rows(b'"a"\n' + text + b'"b"\n' * is_ended, form)[form == "jsonl" :]
    assert (row.problem is None) == is_row
    assert [each.line for each in others] == [3] * is_ended


@pytest.mark.rule("1.references.rows.malformed")
@pytest.mark.parametrize(
    ("form", "body", "message"),
    [
        ("csv", b"a,b\n\n1\n", "f:3: the row has 1 fields, and the file 2 columns"),
        ("csv", b'a\n"1"2\n', "f:2: text follows the closing quote of a field"),
        ("csv", b"a\n\xff\n", "f:2: the row is not UTF-8: invalid start byte"),
        ("jsonl", b'\n{"a"}\n', "f:2: the row is not JSON: Expecting ':' delimiter at character 5"),
        ("jsonl", b"NaN", "f:1: the row is not JSON: NaN is no value of JSON"),
        ("jsonl", b"1e999", "f:1: the row is not JSON: the number 1e999 is out of range"),
        ("jsonl", b'{"a": [{"b": 1, "b": 2}]}', "f:1: the row is not JSON: an object has the key 'b' twice"),
        ("jsonl", b"\xff", "f:1: the row is not UTF-8: invalid start byte"),
    ],
)
def test_1_the_value_of_a_malformed_row_is_an_error_with_file_and_line(form, body, message):
    [row] = rows(body, form)
    assert message == f"f:{row.line}: {row.problem}"
    with pytest.raises(ValueError, match=r"^f:") as caught:
        _ = row.value
    assert str(caught.value) == message


@pytest.mark.rule("1.references.rows.json", "1.numbers.passed")
@pytest.mark.parametrize("text", ["12345678901234567.89", "1.10", "1E30", "1e-400", "0.1", "-0.0", "1.5e3", "7"])
def test_1_a_number_that_is_passed_on_keeps_its_digits(text):
    [row] = rows(b'{"a": [%s]}' % text.encode(), "jsonl")
    assert bytes(encode_value(row.value)) == b'{"a":[%s]}' % text.encode()
    assert row.value["a"][0] == float(text)


@pytest.mark.rule("1.references.rows.file")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a,,b\n", "f:1: column 2 has no name"),
        (b"\na,a\n", "f:2: two columns have the name 'a'"),
        (b"a\rb\r1\r2", "carriage return"),
        (b"\xff\n", "f:1: the row is not UTF-8"),
        (b'"a"b\n', "f:1: text follows"),
        (b'"a', "f:1: the file does not close a quote"),
        (b'a\n1\n"2\n3\n', "f:3: the file does not close a quote"),
    ],
)
def test_1_a_file_that_does_not_say_its_rows_is_an_error_with_the_line(body, message):
    with pytest.raises(ValueError, match=message):
        rows(body, "csv")


@pytest.mark.rule("1.references.rows.file")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_1_damaged_data_ends_in_an_error_and_not_as_a_shorter_file(form):
    whole = b"".join(b'"%d"\n' % number for number in range(200))
    body = gzip.compress(whole, mtime=0)

    def read(damaged, after=""):
        stream = gzip.GzipFile(fileobj=io.BytesIO(damaged))
        return [row.value for row in read_rows(Lines("f", "v", stream), form, after, ())]

    assert read(body + gzip.compress(whole)) == read(gzip.compress(whole + whole))
    cursor = rows(whole, form)[-1].cursor
    for size in range(2, len(body)):
        with pytest.raises(ValueError, match=r"^f:\d+: the compressed data is damaged"):
            read(body[:size])
        with pytest.raises(ValueError, match=r"^f:\d+: "):
            read(body[:size], cursor)
    with pytest.raises(ValueError, match="the compressed data is damaged"):
        read(body + b"more")


@pytest.mark.rule("1.references.rows.after")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "1",
        "0-1-v",
        "-2-1-v",
        "3-2-v",
        "99-2-v",
        "4-2-",
        "4-0-v",
        "4-2-w",
        "٤-2-v",
        "9" * 19 + "-1-v",
        4,
        ["4-2-v"],
    ],
)
def test_1_a_cursor_of_no_row_is_refused(form, cursor):
    body = b'"a"\n"b"\n"c"\n'
    assert rows(body, form, "4-2-v")[0].line == 2
    with pytest.raises(ValueError, match=r"^f.* (cursor|changed)"):
        rows(body, form, cursor)


@pytest.mark.rule("1.references.rows.memory")
@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_1_the_memory_is_that_of_one_row(form):
    """Of many rows, of one that is far too long, and of a field with many quotes."""

    def peak(start, part, times):
        tracemalloc.start()
        stream = io.BufferedReader(Repeated(start, part, times))
        with suppress(ValueError):  # CSV does not close its quote
            deque(read_rows(Lines("f", "v", stream), form, "", ()), maxlen=0)
        return tracemalloc.get_traced_memory()[1]

    try:
        few = peak(b"1\n", b"1\n", 2_000)
        assert peak(b"1\n", b"1\n", 20_000) < few + 10_000
        for part in (b"x" * 10_000, b'""' * 1_000, b"," * 1_000):
            assert peak(b'1\n"', part, 5_000_000 // len(part)) < few + 16 * 2**20
    finally:
        tracemalloc.stop()


class Repeated(io.RawIOBase):
    """A long file that is nowhere."""

    def __init__(self, start, part, times):
        self.rest, self.part, self.times = start, part, times

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self.rest and self.times:
            self.rest, self.times = self.part, self.times - 1
        taken = self.rest[: len(buffer)]
        self.rest = self.rest[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


@pytest.mark.rule("1.references.rows")
@pytest.mark.parametrize(
    ("name", "given", "form"),
    [
        ("a.csv", None, "csv"),
        ("a.CSV.gz", None, "csv"),
        ("a.jsonl", None, "jsonl"),
        ("a.ndjson.gz", None, "jsonl"),
        ("part-0000", "csv", "csv"),
        ("a.csv", "jsonl", "jsonl"),
    ],
)
def test_1_the_name_or_the_caller_tells_the_format(name, given, form):
    assert format_of(name, given) == form


@pytest.mark.parametrize(
    ("name", "given"), [("a.json", None), ("a.csv.zip", None), ("csv", None), ("a.csv", "xml"), ("a.csv", "")]
)
def test_an_unknown_format_is_refused(name, given):
    with pytest.raises(ValueError, match="give format='csv' or format='jsonl'"):
        format_of(name, given)


@pytest.mark.rule("1.references.rows.csv")
@given(body=ANY_BYTES)
def test_1_the_columns_are_named_by_the_caller_or_the_first_row(body):
    """The same rows, a line later."""
    without, error = rows_until_error(body, "csv", columns=("a", "b"))
    named, named_error = rows_until_error(b"a,b\n" + body.removeprefix(b"\xef\xbb\xbf"), "csv")
    assert [(row.line + 1, row.problem, row._value) for row in without] == [
        (row.line, row.problem, row._value) for row in named
    ]
    assert (error is None) == (named_error is None)
    for number, row in enumerate(without, 1):
        assert rows_until_error(body, "csv", row.cursor, columns=("a", "b")) == (without[number:], error)


@pytest.mark.parametrize(
    ("columns", "form", "message"),
    [
        (["a", ""], "csv", "column 2 has no name"),
        (["a", "a"], "csv", "two columns"),
        (["a"], "jsonl", "of CSV files"),
        ("ab", "csv", "one text"),
    ],
)
def test_mistaken_columns_are_refused(columns, form, message):
    assert check_columns(["a", "b"], "csv") == ("a", "b")
    assert check_columns((), form) == ()
    with pytest.raises(ValueError, match=message):
        check_columns(columns, form)
