"""The rows of a file behave alike on a bucket and on a folder."""

import gzip
from itertools import islice

import pytest

from asya import data

COUNT = 3_000
PLAIN = b"id,name\n" + b"".join(b'%d,"name, %d"\n' % (number, number) for number in range(COUNT))
BODIES = {
    "raw/a.csv": PLAIN,
    "raw/a.csv.gz": gzip.compress(PLAIN),
    "raw/members.csv": gzip.compress(PLAIN[:1000]) + gzip.compress(PLAIN[1000:]),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(data, "_READ_AHEAD", 1_000)


def values(found):
    return [(row.line, row.value) for row in found]


@pytest.mark.rule("1.references.rows", "1.references.rows.after")
@pytest.mark.parametrize("name", BODIES)
def test_1_rows_come_from_the_beginning_or_after_a_cursor(store, name):
    data.write(name, BODIES[name])
    expected = [(number + 2, {"id": f"{number}", "name": f"name, {number}"}) for number in range(COUNT)]
    found = [*data.rows(name)]
    assert values(found) == expected
    for number in (0, 1, 70, COUNT - 2, COUNT - 1):
        assert values(data.rows(name, after=found[number].cursor)) == expected[number + 1 :]


@pytest.mark.rule("1.references.rows")
def test_1_empty_files_have_no_rows(store):
    for name in ("a.csv", "a.jsonl"):
        data.write(name, b"")
        assert [*data.rows(name)] == []
    data.write("b.csv", b"id,name\n")
    assert [*data.rows("b.csv")] == []


@pytest.mark.rule("1.references.rows.after")
@pytest.mark.parametrize("name", BODIES)
def test_1_a_file_that_changes_is_refused(store, name):
    data.write(name, BODIES[name])
    found = data.rows(name)
    first = next(found)
    data.write(name, PLAIN.upper() + b"1,2\n")
    with pytest.raises(ValueError, match=f"{name} has changed while it was read"):
        list(found)
    with pytest.raises(ValueError, match=f"{name} has changed since"):
        next(data.rows(name, after=first.cursor))


@pytest.mark.rule("1.references.rows.memory")
def test_1_parts_are_read_when_they_are_needed(store, monkeypatch):
    data.write("a.csv", PLAIN)
    read = []
    kind = type(data._store())
    part = kind.part

    def counted(self, reference, version, start, end):
        read.append((start, end))
        return part(self, reference, version, start, end)

    monkeypatch.setattr(kind, "part", counted)
    found = data.rows("a.csv")
    assert read == []
    list(islice(found, 20))
    assert read == [(0, 1_000)]
    list(found)
    assert [start for start, _ in read] == [*range(0, len(PLAIN), 1_000)]
    assert read[-1][1] == len(PLAIN)


@pytest.mark.parametrize(
    "act", [lambda: data.rows("raw/a.json"), lambda: data.rows("s3://b/\ud800.csv"), lambda: data.rows("")]
)
def test_a_mistaken_call_is_refused_at_once(store, act):
    with pytest.raises(ValueError, match=r"format|reference"):
        act()


def test_a_missing_file_is_named(store):
    with pytest.raises(FileNotFoundError, match=r"file 'raw/none\.csv' does not exist"):
        next(data.rows("raw/none.csv"))


def test_a_malformed_row_is_told_with_its_file(store):
    data.write("raw/a.jsonl", b'{"a": 1}\n{"a": \n{"a": 3}\n')
    good, bad, other = data.rows("raw/a.jsonl")
    assert (good.value, other.value) == ({"a": 1}, {"a": 3})
    with pytest.raises(ValueError, match=r"^raw/a\.jsonl:2: the row is not JSON"):
        _ = bad.value
