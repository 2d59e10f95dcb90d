"""Whoever writes a table makes no other writer read, move or remove anything outside of it (`protocol §10.tables.records`).

Each field of each record of an honest table gets each hostile value. A call of somebody else then goes on from there.
"""

import base64
import json
import pickle
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812

from asya_spark.tables.description import Description, Write, latest, settle
from asya_spark.tables.errors import TableError
from asya_spark.tables.records import FOLDER, KINDS, Commit, Entry, Layout, partition_name
from asya_spark.tables.replacements import Replacements, Table
from tests.doubles.stored_table import Store, StoredCommits, StoredFiles

DAY = "day=2026-01-01"
NOW = datetime(2026, 1, 3, tzinfo=UTC)
URI = "s3://shop/tables/clean"
OUTSIDE = {
    f"s3://shop/{name}": "of others"
    for name in ("private/p1/secret.parquet", "private/p1/other.txt", "tables/other/day=1/x.parquet", "x.parquet")
}
OLD, LAST, OWN, FOREIGN = (letter * 32 for letter in "abcd")
ATTEMPT = "0123456789ab"


class WatchedFiles(StoredFiles):
    """Paths are resolved as Hadoop resolves them, and all that is touched is below the table."""

    def exists(self, uri: str) -> bool:
        return super().exists(_inside(uri))

    def rename(self, uri: str, target: str) -> bool:
        return super().rename(_inside(uri), _inside(target))

    def remove_folder(self, uri: str) -> None:
        resolved = _inside(uri)
        assert len(resolved.removeprefix(f"{URI}/{FOLDER}/").split("/")) > 1, f"{uri} has more than one call"
        super().remove_folder(resolved)


class WatchedCommits(StoredCommits):
    def read(self, uri: str) -> bytes | None:
        return super().read(_inside(uri))

    def create(self, uri: str, content: bytes) -> bool:
        return super().create(_inside(uri), content)


def _inside(uri: str) -> str:
    scheme, _, path = uri.partition("://")
    resolved = f"{scheme}://{posixpath.normpath(path)}"
    assert resolved.startswith(f"{URI}/"), f"{uri} is outside of the table"
    return resolved


def table_in(store: Store, layout: Layout) -> Table:
    return Table(URI, layout, WatchedFiles(store), WatchedCommits(store), lambda: NOW)


def write(table: Table, store: Store, key: str, row: str) -> bool:
    name = "part-0.parquet" if table.layout == "versioned" else f"{DAY}/part-0.parquet"

    def stage(folder: str) -> tuple[tuple[str, ...], int]:
        store[f"{folder}/{name}"] = row
        return (name,), 1

    return Replacements(table, DAY).run(key, stage, {"id": row})


def commit_name(key: str) -> str:
    return f"{URI}/{FOLDER}/commits/{key}.json"


def entry_name(number: int) -> str:
    return f"{URI}/{FOLDER}/replacements/{partition_name(DAY)}-{number:06d}.json"


def honest(layout: Layout) -> Store:
    """Three days ago a call wrote, two days ago another one, whose rows are committed and not published."""
    store = Store(OUTSIDE)
    for days, key in ((3, OLD), (2, LAST)):
        table = replace(table_in(store, layout), now=lambda days=days: NOW - timedelta(days=days))
        write(table, store, key, f"rows of {key}")
    del store[f"{URI}/{FOLDER}/published/{LAST}"]
    return store


def folders(layout: Layout, key: str) -> Iterator[Any]:
    kind = KINDS[layout]
    own = f"{URI}/{FOLDER}/{kind}/{key}"
    yield from (
        "s3://shop/private/p1",
        "s3://shop/private/p1/secret.parquet",
        "s3://other/bucket",
        "s3://shop",
        "file:///etc",
    )
    yield from (URI, f"{URI}/{DAY}", f"{URI}/{FOLDER}", f"{URI}/{FOLDER}/{kind}", own, f"{own}/", f"{own}/..")
    yield from (f"{own}/{ATTEMPT}/", f"{own}/{ATTEMPT}/../../../../../private/p1", f"{own}/../{FOREIGN}/{ATTEMPT}")
    yield from (f"{own}/{ATTEMPT.upper()}", f"{own}/{ATTEMPT}0", f"{own}/{ATTEMPT}\n", f"{own}/{ATTEMPT[:-1]}*")
    yield f"{URI}/{FOLDER}/{kind}/{FOREIGN}/{ATTEMPT}"
    yield f"{URI}/{FOLDER}/{'staging' if kind == 'versions' else 'versions'}/{key}/{ATTEMPT}"
    yield from (
        f"s3://shop/private/{FOLDER}/{kind}/{key}/{ATTEMPT}",
        f"s3n://shop/tables/clean/{FOLDER}/{kind}/{key}/{ATTEMPT}",
    )
    yield from (
        f"{FOLDER}/{kind}/{key}/{ATTEMPT}",
        "../private",
        "private",
        "/",
        "",
        "s3://[",
        None,
        1,
        True,
        [URI],
        {},
    )


def names(layout: Layout) -> Iterator[Any]:
    inner = "" if layout == "versioned" else f"{DAY}/"
    for name in (
        "../p.parquet",
        "/p.parquet",
        "./p.parquet",
        "a/../p.parquet",
        "_asya/p.parquet",
        ".p.parquet",
        "_p.parquet",
    ):
        yield [f"{inner}{name}"]
    for name in (
        "",
        "..",
        "secret.txt",
        "p.parquet/",
        "s3://shop/x.parquet",
        "{a,b}.parquet",
        "*.parquet",
        "p\n.parquet",
        "a=/p.parquet",
    ):
        yield [f"{inner}{name}"]
    yield ["../../../../../private/p1/secret.parquet"]
    yield ["/part-0.parquet"]
    yield ["//shop/private/p1/secret.parquet"]
    yield ["s3://shop/private/p1/secret.parquet"]
    yield ["day=2026-01-02/part-0.parquet", f"{inner}part-0.parquet"]
    yield [f"{inner}part-0.parquet"] * 2
    yield [f"{DAY}/_asya/part-0.parquet"]
    yield [f"{DAY}/../part-0.parquet"]
    if layout == "plain":
        yield ["secret.parquet"]
    yield from ("part-0.parquet", None, 1, [1], [None], [["part-0.parquet"]], {"part-0.parquet": 1})


PARTITIONS = (
    "",
    "/",
    "..",
    "../private",
    "../../private/p1",
    FOLDER,
    f"{FOLDER}/staging",
    f"{DAY}/..",
    f"{DAY}/",
    "day=2026-01-02",
    "day",
    "day=a=b",
    ".day=1",
    f"{DAY}/x=1",
    "day={a,b}",
    "s3://shop/private",
    "\ud800=1",
    None,
    1,
    [DAY],
)
KEYS = (FOREIGN, "", "..", "../../../private", f"{OLD}/../..", OLD.upper(), "a" * 31, None, 1, [OLD])
NUMBERS = (-1, -(10**9), "1", 1.5, True, None, [], {})
TIMES = ("yesterday", "2026-01-01", "0000", 1, True, [], {}, "٢٠٢٦-01-01T00:00:00Z")
OTHERS = (
    ["../x"],
    ["../../../private/p1/secret.parquet"],
    ["/x"],
    [""],
    ["a/../../x"],
    [f"{FOLDER}/x"],
    ["s3://shop/private"],
    "x",
    None,
    [1],
    {},
)
BROKEN = ("", "{", "[]", "null", "1", '"text"', "[" * 100_000, '{"key": NaN}', "{}")


def of_commit(layout: Layout, key: str) -> dict[str, list[Any]]:
    return {
        "key": list(KEYS) if key != FOREIGN else [],
        "partition": list(PARTITIONS),
        "folder": list(folders(layout, key)),
        "files": list(names(layout)),
        "rows": list(NUMBERS),
        "after": list(NUMBERS),
        "at": list(TIMES),
        "call": ["text", None, 1, []],
        "unknown": [1],
    }


def of_entry() -> dict[str, list[Any]]:
    return {
        "partition": list(PARTITIONS),
        "key": [key for key in KEYS if key != FOREIGN],
        "others": list(OTHERS),
        "at": [*TIMES, "", None],
        "unknown": [1],
    }


def changed(content: str, values: dict[str, list[Any]]) -> Iterator[str]:
    """The record with each hostile value, without each field, and none at all."""
    record = json.loads(content)
    for name, hostile in values.items():
        for value in hostile:
            yield json.dumps({**record, name: value})
    for name in record.keys() - {"after", "at", "call"} if "files" in record else record:
        yield json.dumps({field: value for field, value in record.items() if field != name})
    yield from BROKEN


def refused(store: Store, uri: str, content: str, act: Callable[[Store], Any]) -> None:
    """A call that finds a hostile record names it, and takes nothing away."""
    store = Store(store)
    store[uri] = content
    before = dict(store)
    with pytest.raises(TableError) as caught:
        act(store)
    assert uri in str(caught.value), content
    assert "remove it" in str(caught.value)
    assert {name: store[name] for name in before} == before, content
    assert all(name.startswith(f"{URI}/{FOLDER}/") for name in store.keys() - before.keys())


@pytest.fixture(params=["plain", "versioned"])
def layout(request: pytest.FixtureRequest) -> Layout:
    return request.param  # type: ignore[no-any-return]


def victim(layout: Layout) -> Callable[[Store], Any]:
    return lambda store: write(table_in(store, layout), store, OWN, "rows of the victim")


def reader(layout: Layout) -> Callable[[Store], Any]:
    def read(store: Store) -> None:
        table = table_in(store, layout)
        for entry in table.last_entries():
            table.commit_of(entry.key, entry.partition)

    return read


@pytest.mark.rule("10.tables.records")
def test_10_a_hostile_commit_of_the_own_call_is_refused(layout: Layout) -> None:
    store, uri = honest(layout), commit_name(OWN)
    content = store[commit_name(LAST)].replace(LAST, OWN)
    for hostile in changed(content, of_commit(layout, OWN)):
        refused(store, uri, hostile, victim(layout))


@pytest.mark.rule("10.tables.records")
def test_10_a_hostile_commit_of_another_call_is_refused(layout: Layout) -> None:
    """The own call has its number, and dies; then the commit is overwritten whose rows it has to publish."""
    store, uri = honest(layout), commit_name(LAST)
    for hostile in changed(store[uri], of_commit(layout, LAST)):
        refused(store, uri, hostile, lambda store: write(table_in(store, layout), store, LAST, "again"))
        refused(store, uri, hostile, reader(layout))


@pytest.mark.rule("10.tables.records")
def test_10_a_hostile_number_is_refused(layout: Layout) -> None:
    store, uri = honest(layout), entry_name(2)
    for hostile in changed(store[uri], of_entry()):
        refused(store, uri, hostile, lambda store: write(table_in(store, layout), store, LAST, "again"))
        refused(store, uri, hostile, reader(layout))


@pytest.mark.rule("10.tables.records")
@pytest.mark.parametrize("kind", ["commit", "entry"])
def test_10_a_hostile_record_of_a_version_to_remove_is_refused(kind: str) -> None:
    """Versions of three days ago and of two days ago were replaced more than a day ago."""
    store = honest("versioned")
    table = replace(table_in(store, "versioned"), now=lambda: NOW - timedelta(days=1, hours=1))
    write(table, store, FOREIGN, "third")
    uri = commit_name(OLD) if kind == "commit" else entry_name(1)
    store[f"{URI}/{FOLDER}/versions/{OLD}/{ATTEMPT}/part-0.parquet"] = "left"
    values = of_commit("versioned", OLD) if kind == "commit" else of_entry()
    for hostile in changed(store.get(uri, ""), values):
        refused(store, uri, hostile, victim("versioned"))


@pytest.mark.rule("10.tables.records")
def test_10_a_hostile_commit_of_an_append_is_refused() -> None:
    store, uri = Store(OUTSIDE), commit_name(OWN)
    record = {
        "key": OWN,
        "partition": "",
        "folder": f"{URI}/{FOLDER}/staging/{OWN}/{ATTEMPT}",
        "files": ["part-0.parquet"],
        "rows": 1,
    }
    values = of_commit("plain", OWN)
    values["partition"].remove("")
    values["files"] = [
        files
        for files in values["files"]
        if files not in (["secret.parquet"], ["day=2026-01-02/part-0.parquet", f"{DAY}/part-0.parquet"])
    ]
    store[uri] = json.dumps(record)
    assert table_in(store, "plain").commit_of(OWN, "")
    for hostile in changed(json.dumps(record), values):
        refused(store, uri, hostile, lambda store: table_in(store, "plain").commit_of(OWN, ""))


# As ExternalCatalogUtils of Spark has them.
ESCAPED = {*map(chr, range(32)), *"\"#%'*/:=?\\{[]^", chr(127)}


@pytest.mark.rule("10.tables.records")
def test_10_each_value_of_a_partition_as_spark_writes_it_is_one() -> None:
    for code in (*range(1, 0x180), 0x2028, 0x1F600):
        character = f"%{code:02X}" if chr(code) in ESCAPED else chr(code)
        for text in (character, f".{character}", f"{character}.", "__HIVE_DEFAULT_PARTITION__"):
            partition = f"_a b={text}/x{character}={text}"
            uri = f"{URI}/{FOLDER}/replacements/{partition_name(partition)}-000001.json"
            entry = Entry(partition, OWN, (f"{partition}/any name#.csv",), "2026-01-01T00:00:00Z")
            assert Entry.decode(entry.encode(), uri) == entry
            folder = f"{URI}/{FOLDER}/staging/{OWN}/{ATTEMPT}"
            commit = Commit(OWN, partition, folder, (f"{partition}/y={text}/part-0.c000.snappy.parquet",), 1)
            assert Commit.decode(commit.encode(), commit_name(OWN), URI, "plain", OWN) == commit


@pytest.mark.rule("10.tables.records")
def test_10_a_folder_is_the_same_by_either_name_of_s3() -> None:
    store = honest("versioned")
    store[commit_name(LAST)] = store[commit_name(LAST)].replace("s3://", "s3a://")
    commit = table_in(store, "versioned").commit_of(LAST, DAY)
    assert commit is not None
    assert store[f"{commit.folder}/part-0.parquet"] == f"rows of {LAST}"


@pytest.mark.rule("10.tables.records")
def test_10_numbers_are_in_the_order_of_numbers() -> None:
    store = honest("plain")
    table = table_in(store, "plain")
    store[entry_name(999_998)], store[entry_name(999_999)] = store.pop(entry_name(1)), store.pop(entry_name(2))
    for number, key in ((1_000_000, OWN), (1_000_001, FOREIGN)):
        assert write(table, store, key, f"rows of {key}")
        assert [entry.key for entry in table.last_entries()] == [key]
        assert entry_name(number) in store
        assert [store[f"{URI}/{DAY}/{name}"] for name in table.files.tree(f"{URI}/{DAY}")] == [f"rows of {key}"]


@pytest.mark.rule("10.tables.records")
@pytest.mark.parametrize(
    "name", ["x", "000003", "3.json", "0000003.json", "-00003.json", "000000.json", "٠٠٠٠٠٣.json", "000003.json.json"]
)
def test_10_a_name_without_a_number_is_refused(layout: Layout, name: str) -> None:
    store = honest(layout)
    uri = f"{URI}/{FOLDER}/replacements/{partition_name(DAY)}-{name}"
    refused(store, uri, store[entry_name(2)], victim(layout))
    uri = f"{URI}/{FOLDER}/table/{name}"
    refused(store, uri, "{}", lambda store: latest(table_in(store, layout)))


@pytest.mark.rule("10.tables.records")
def test_10_a_folder_or_a_file_whose_name_leads_out_is_left() -> None:
    store = honest("plain")
    store[f"{URI}/{FOLDER}/replaced/../x"] = store[f"{URI}/{FOLDER}/replaced/0/x"] = "theirs"
    write(table_in(store, "plain"), store, OWN, "rows of the victim")
    assert store[f"{URI}/{FOLDER}/replaced/../x"] == store[f"{URI}/{FOLDER}/replaced/0/x"] == "theirs"

    class Leading(WatchedFiles):
        def tree(self, folder: str) -> list[str]:
            return [*super().tree(folder), "../../../private/p1/secret.parquet"]

    table = replace(table_in(store, "plain"), files=Leading(store))
    with pytest.raises(TableError, match=r"leads out of it; remove it"):
        write(table, store, FOREIGN, "more")


RAN: list[str] = []


class Harmful:
    def __reduce__(self) -> Any:
        return RAN.append, ("the code of the record",)


COLUMNS = T.StructType([T.StructField("n", T.IntegerType()), T.StructField("day", T.DateType())])
DESCRIBED = json.loads(Description(COLUMNS, ("day",), ("day",), "plain").encode())
UDT = {
    "type": "udt",
    "pyClass": "json.NoSuchClass",
    "serializedClass": base64.b64encode(pickle.dumps(Harmful())).decode(),
    "sqlType": "integer",
}


def types() -> Iterator[Any]:
    for udt in (
        UDT,
        {**UDT, "pyClass": "pyspark.ml.linalg.VectorUDT"},
        {"type": "udt", "pyClass": "antigravity.X"},
        {"type": "udt", "class": "java.lang.Runtime"},
    ):
        yield udt
        yield {"type": "array", "elementType": udt, "containsNull": True}
        yield {"type": "map", "keyType": "string", "valueType": udt, "valueContainsNull": True}
        yield {"type": "struct", "fields": [{"name": "x", "type": udt, "nullable": True, "metadata": {}}]}
    yield from ("nonsense", None, 1, {}, [], {"type": "struct"}, {"type": "array", "elementType": []})


@pytest.mark.rule("10.tables.records")
def test_10_a_hostile_description_is_refused_and_runs_nothing(layout: Layout) -> None:
    store, uri = honest(layout), f"{URI}/{FOLDER}/table/000001.json"
    columns = [
        {"type": "struct", "fields": [{"name": "n", "type": kind, "nullable": True, "metadata": {}}]}
        for kind in types()
    ]
    values = {
        "columns": [*columns, *types()],
        "partitions": [None, 1, [1], [None]],
        "replaced_by": [1, [1]],
        "layout": ["other", None, 1, [], "../plain"],
    }
    write_of = Write(COLUMNS, ("day",), ("day",), layout, "add")
    for hostile in changed(json.dumps(DESCRIBED), values):
        refused(store, uri, hostile, lambda store: latest(table_in(store, layout)))
        refused(store, uri, hostile, lambda store: settle(table_in(store, layout), write_of, None))
    assert not RAN


@pytest.mark.rule("10.tables.records")
def test_10_the_millionth_description_counts() -> None:
    store = Store()
    for number in (999_999, 1_000_000):
        fields = {**DESCRIBED, "partitions": [f"p{number}"]}
        store[f"{URI}/{FOLDER}/table/{number:06d}.json"] = json.dumps(fields)
    described = latest(table_in(store, "plain"))
    assert described is not None
    assert described.partitions == ("p1000000",)


@pytest.mark.rule("10.tables.records")
def test_10_a_call_with_a_class_of_its_own_is_refused_and_vectors_are_not() -> None:
    class Own(T.UserDefinedType):  # type: ignore[type-arg]
        @classmethod
        def sqlType(cls) -> T.DataType:  # noqa: N802
            return T.IntegerType()

        @classmethod
        def module(cls) -> str:
            return __name__

    columns = T.StructType([T.StructField("n", Own())])
    with pytest.raises(TableError, match=re.escape(f"{__name__}.Own")):
        settle(table_in(Store(), "plain"), Write(columns, (), None, "plain", None), None)
