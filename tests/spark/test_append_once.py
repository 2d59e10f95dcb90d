"""Appends happen once, wherever a process dies (`protocol §10.append-once`)."""

import base64
import json
import os
import pickle
import random
from itertools import count
from pathlib import Path

import pytest

from asya_spark.context import Context, active_context
from asya_spark.files import HadoopFiles
from asya_spark.tables import TableError, append_once, read
from asya_spark.tables.commits import LocalCommits
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark

KILLS = 200 if os.environ.get("ASYA_FULL_SIZE") else 25
STEPS = (
    (LocalCommits, "read"),
    (LocalCommits, "create"),
    *((HadoopFiles, name) for name in ("tree", "exists", "rename")),
)


class KilledError(BaseException):
    """Stands for the end of the process."""


def hop(name="e1", *, position=1, attempt=1, generation=0, is_run=False):
    return Context(name, "", {}, "heavy", position, attempt, None, "scratch/", generation=generation, is_run=is_run)


def append(spark, table, envelope, rows, **options):
    with active_context(envelope):
        frame = spark.createDataFrame([(envelope.id, number) for number in range(rows)], "id STRING, n INT")
        append_once(frame.repartition(2), table, **options)


def contents(spark, table):
    return sorted(tuple(row) for row in spark.read.parquet(table).collect())


@pytest.fixture
def table(data_folder):
    return f"file://{data_folder}/tables/clean"


@pytest.mark.rule("10.append-once")
def test_10_attempts_of_a_hop_append_once_and_other_hops_beside_it(spark, table):
    for envelope in (hop(), hop(attempt=2), hop(), hop("e2"), hop(position=2), hop(generation=1)):
        append(spark, table, envelope, 3)
    assert contents(spark, table) == sorted([("e1", n) for n in range(3)] * 3 + [("e2", n) for n in range(3)])


@pytest.mark.rule("10.append-once")
def test_10_the_rows_of_the_first_attempt_count(spark, table):
    append(spark, table, hop(), 3)
    append(spark, table, hop(attempt=2), 5)
    assert contents(spark, table) == [("e1", n) for n in range(3)]


@pytest.mark.rule("10.append-once")
def test_10_calls_of_a_hop_are_told_apart_by_their_order_or_their_names(spark, table):
    for attempt in (1, 2):
        envelope = hop(attempt=attempt)
        append(spark, table, envelope, 1)
        append(spark, table, envelope, 1)
        append(spark, table, envelope, 1, name="left" if attempt == 1 else "right")
        append(spark, table, envelope, 1, name="right" if attempt == 1 else "left")
    assert contents(spark, table) == [("e1", 0)] * 4


@pytest.mark.rule("10.append-once")
def test_10_partitions_are_folders_and_a_reference_names_the_table(spark, table):
    append(spark, "tables/clean", hop(), 3, partition_by=["n"])
    append(spark, "tables/clean", hop(attempt=2), 3, partition_by=["n"])
    assert spark.read.parquet(table).where("n = 1").count() == 1
    assert {path.parent.name for path in Path(table.removeprefix("file://")).glob("n=*/asya-*.parquet")} == {
        "n=0",
        "n=1",
        "n=2",
    }


COLUMNS = ("_load_date", "_", "__x", "n", "year=", "a b", "_metadata", "ÅR", "asya", "_asya")
VALUES = ("2026-01-01", "_", ".", "_temporary", "a/b", "a=b", "50 %", "[x]", "{x}*?", "", None, "\u202f", "_asya")


@pytest.mark.rule("10.append-once.rows")
@pytest.mark.parametrize("column", COLUMNS)
def test_10_rows_of_any_partition_arrive(spark, table, column):
    rows = list(enumerate(VALUES))
    for attempt in (1, 2):
        with active_context(hop(attempt=attempt)):
            frame = spark.createDataFrame(rows, f"n_ INT, `{column}` STRING")
            append_once(frame, table, partition_by=[column])
    found = spark.read.parquet(table)
    # Spark reads an empty value as a missing one.
    assert sorted(row["n_"] for row in found.collect()) == [number for number, _ in rows]


@pytest.mark.rule("10.append-once.rows")
def test_10_partitions_that_no_reader_finds_are_refused_before_anything_is_written(spark, table):
    with active_context(hop()), pytest.raises(ValueError, match=r"no reader finds the partitions of '\.day'"):
        append_once(spark.createDataFrame([(1, 2)], "n INT, `.day` INT"), table, partition_by=[".day"])
    assert not Path(table.removeprefix("file://")).exists()


@pytest.mark.rule("10.append-once.rows")
def test_10_a_staged_file_that_is_not_found_fails_the_call_and_loses_nothing(spark, table, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(HadoopFiles, "tree", lambda *arguments, tree=HadoopFiles.tree: tree(*arguments)[1:])
        with pytest.raises(
            TableError, match=r"has written 10 rows .* its files \(1\) have \d\. Nothing of them is in the table"
        ):
            append(spark, table, hop(), 10)
    assert list(Path(table.removeprefix("file://")).glob("_asya/staging/*/*/*.parquet"))
    append(spark, table, hop(attempt=2), 10)
    assert len(contents(spark, table)) == 10


@pytest.mark.rule("10.append-once.rows")
def test_10_a_frame_without_rows_is_appended(spark, table):
    append(spark, table, hop(), 0)
    with active_context(hop("e2")):
        append_once(spark.range(10).where("false"), f"{table}/other")
    assert contents(spark, table) == []


@pytest.mark.rule("10.tables.records")
@pytest.mark.parametrize("field", ["folder", "files", "key", "partition"])
def test_10_a_commit_that_somebody_else_wrote_takes_no_file_of_others(spark, table, data_folder, monkeypatch, field):
    """Who writes the table knows the call, and writes its commit before it does."""
    secret = Path(data_folder) / "private" / "p1" / "secret.parquet"
    secret.parent.mkdir(parents=True)
    secret.write_bytes(b"rows of others")
    with monkeypatch.context() as patch:
        patch.setattr(HadoopFiles, "rename", lambda *_: False)
        with pytest.raises(TableError, match="is gone"):
            append(spark, table, hop(), 1)
    (commit,) = Path(table.removeprefix("file://")).glob("_asya/commits/*.json")
    honest = commit.read_text()
    hostile = {
        "folder": f"file://{secret.parent}",
        "files": ["../../../../../../private/p1/secret.parquet"],
        "key": "f" * 32,
        "partition": "../../private",
    }
    commit.write_text(json.dumps({**json.loads(honest), field: hostile[field]}))
    with pytest.raises(TableError, match=rf"{commit.name} is no record .* {field}|its file"):
        append(spark, table, hop(attempt=2), 1)
    assert [path.name for path in secret.parent.iterdir()] == ["secret.parquet"]
    commit.write_text(honest)
    append(spark, table, hop(attempt=3), 1)
    assert contents(spark, table) == [("e1", 0)]


class Marks:
    """Leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def class_as_type(path):
    return {
        "type": "udt",
        "pyClass": "json.NoSuchClass",
        "serializedClass": base64.b64encode(pickle.dumps(Marks(path))).decode(),
        "sqlType": "integer",
    }


@pytest.mark.rule("10.tables.records")
def test_10_the_type_of_a_file_or_a_record_runs_no_code(spark, table, tmp_path):
    """Python reads a type of its own by running what its pickle says."""
    marked = tmp_path / "marked"
    columns = {
        "type": "struct",
        "fields": [{"name": "n", "type": class_as_type(marked), "nullable": True, "metadata": {}}],
    }
    typed = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(columns))
    frame = spark._jsparkSession.createDataFrame(spark._jvm.java.util.ArrayList(), typed)
    frame.write().parquet(table)
    with pytest.raises(TableError, match=r"column of the class json\.NoSuchClass"):
        append(spark, table, hop(), 1)
    with pytest.raises(TableError, match=r"column of the class json\.NoSuchClass"):
        read(spark, table)
    other = f"{table}-described"
    append(spark, other, hop(), 1)
    record = Path(other.removeprefix("file://")) / "_asya" / "table" / "000001.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "columns": columns}))
    for act in (lambda: append(spark, other, hop("e2"), 1), lambda: read(spark, other)):
        with pytest.raises(TableError, match=r"000001\.json is no record .* class json\.NoSuchClass"):
            act()
    assert not marked.exists()


@pytest.mark.rule("10.append-once")
def test_10_a_dataframe_job_is_told_why_it_cannot(spark, table):
    with pytest.raises(TableError, match="for jobs with one payload"):
        append(spark, table, hop(is_run=True), 1)


def test_10_a_table_elsewhere_is_refused(spark):
    with pytest.raises(ValueError, match="a table needs s3://"):
        append(spark, "hdfs://name/table", hop(), 1)


def test_10_rows_that_somebody_removed_while_they_were_staged_are_named(spark, table, monkeypatch):
    monkeypatch.setattr(HadoopFiles, "rename", lambda *_: False)
    with pytest.raises(TableError, match=r"is committed to .* and is gone"):
        append(spark, table, hop(), 1)


@pytest.mark.rule("10.append-once")
def test_10_a_job_appends_in_its_own_run(spark, tmp_path, data_folder, table):
    payloads = [{"rows": n} for n in (1, 2, 3)]
    Run(spark, tmp_path / "first", payloads, job="tests.spark.session_jobs.appends", parallel=3)
    again = Run(spark, tmp_path / "second", payloads, job="tests.spark.session_jobs.appends")
    assert {head.end for head in again.heads.values()} == {"done"}
    assert spark.read.parquet(table).count() == 6


def by_attempt(spark, table):
    """The envelopes with the attempt whose rows count; these must be all rows of that attempt, and no other ones."""
    rows = {}
    for row in spark.read.parquet(table).collect():
        rows.setdefault(row.id, []).append((row.attempt, row.n))
    for name, found in rows.items():
        attempt = found[0][0]
        assert sorted(found) == [(attempt, n) for n in range(attempt)], name
    return {name: found[0][0] for name, found in rows.items()}


def append_attempt(spark, table, name, attempt):
    """Appends as many rows as the number of the attempt, each in a file of its own."""
    with active_context(hop(name, attempt=attempt)):
        rows = [(name, number, attempt) for number in range(attempt)]
        rdd = spark.sparkContext.parallelize(rows, attempt)
        append_once(spark.createDataFrame(rdd, "id STRING, n INT, attempt INT"), table)


@pytest.mark.rule("10.append-once")
def test_10_no_row_is_lost_or_doubled_by_processes_that_die(spark, table, monkeypatch):
    """Each envelope is attempted until an attempt ends; before that attempts die right before or right after any step."""
    chance = random.Random(14)
    deaths = 0

    def dying(original):
        def step(*arguments):
            nonlocal deaths
            fate = chance.random() if deaths < KILLS else 1.0
            if fate < 0.08:
                deaths += 1
                raise KilledError
            result = original(*arguments)
            if fate < 0.16:
                deaths += 1
                raise KilledError
            return result

        return step

    for kind, name in STEPS:
        monkeypatch.setattr(kind, name, dying(getattr(kind, name)))
    envelopes = 0
    while deaths < KILLS:
        envelopes += 1
        for attempt in count(1):
            try:
                append_attempt(spark, table, f"e{envelopes}", attempt)
                break
            except KilledError:
                continue
    monkeypatch.undo()
    assert set(by_attempt(spark, table)) == {f"e{number}" for number in range(1, envelopes + 1)}


@pytest.mark.rule("10.append-once")
@pytest.mark.parametrize(
    ("kind", "name", "counts"),
    [
        (LocalCommits, "read", 2),
        (HadoopFiles, "tree", 2),
        (LocalCommits, "create", 2),
        (HadoopFiles, "exists", 3),
        (HadoopFiles, "rename", 3),
    ],
)
def test_10_of_two_attempts_at_the_same_time_the_first_to_commit_counts(spark, table, monkeypatch, kind, name, counts):
    """Attempt 2 overtakes attempt 3 right before one of its steps, as after a driver that is taken for dead."""
    original, overtaken = getattr(kind, name), []

    def overtake(*arguments):
        if not overtaken:
            overtaken.append(True)
            append_attempt(spark, table, "e1", 2)
        return original(*arguments)

    monkeypatch.setattr(kind, name, overtake)
    append_attempt(spark, table, "e1", 3)

    assert overtaken
    assert by_attempt(spark, table) == {"e1": counts}
