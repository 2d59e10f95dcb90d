"""Appends to Iceberg tables happen once, wherever a process dies (`protocol §10.append-once.iceberg`).

These tests run on Iceberg itself, with a catalog in a folder. What they do not run: Glue, S3, and EMR's own jar.
"""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql.readwriter import DataFrameWriterV2

from asya_spark.context import Context, active_context
from asya_spark.tables import TableError, append_once
from asya_spark.tables.iceberg import IcebergTable

KILLS = 200 if os.environ.get("ASYA_FULL_SIZE") else 40
STEPS = ("find", "stage", "publish")


class KilledError(BaseException):
    """Stands for the end of the process."""


def append(spark, table, name="e1", *, attempt=1, rows=None, position=1, generation=0, **options):
    """Appends as many rows as the number of the attempt, each in a file of its own."""
    envelope = Context(name, "", {}, "heavy", position, attempt, None, "scratch/", generation=generation)
    rows = attempt if rows is None else rows
    with active_context(envelope):
        rdd = spark.sparkContext.parallelize([(name, number, attempt) for number in range(rows)], max(rows, 1))
        append_once(spark.createDataFrame(rdd, "id STRING, n INT, attempt INT"), table, **options)


def contents(spark, table):
    """The rows that a reader finds, who has no part in the appends."""
    return sorted((row.id, row.n, row.attempt) for row in spark.newSession().table(table).collect())


def rows_of(name, attempt):
    return [(name, number, attempt) for number in range(attempt)]


def killed_after(monkeypatch, step):
    """The next calls of a step are the last thing that their process does."""
    original = getattr(IcebergTable, step)

    def last(self, *arguments):
        original(self, *arguments)
        raise KilledError

    monkeypatch.setattr(IcebergTable, step, last)


def staged(spark, table):
    return spark.newSession().sql(f"SELECT 1 FROM {table}.snapshots WHERE summary['wap.id'] IS NOT NULL").count()


def expire(spark, table):
    spark.sql(f"REFRESH TABLE {table}")
    spark.sql(
        f"CALL iceberg.system.expire_snapshots(table => '{table.removeprefix('iceberg.')}', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')"
    )


@pytest.mark.rule("10.append-once.iceberg")
def test_10_attempts_of_a_hop_append_once_and_other_hops_beside_it(spark, table):
    append(spark, table, attempt=3)
    append(spark, table, attempt=4)
    append(spark, table, "e2")
    append(spark, table, position=2)
    append(spark, table, generation=1)
    append(spark, table, attempt=4, name="e1")
    assert contents(spark, table) == sorted([*rows_of("e1", 3), *rows_of("e1", 1) * 2, *rows_of("e2", 1)])


@pytest.mark.rule("10.append-once.iceberg")
@pytest.mark.parametrize("column", ["_load_date", "_asya", "_SUCCESS", ".day"])
def test_10_rows_in_partitions_with_hidden_names_are_appended(spark, column, monkeypatch):
    """Iceberg commits the files that its tasks name, and lists no folder; a folder such as `_load_date=…` hides none."""
    table = f"iceberg.sales.hidden{column.strip('._').lower()}"
    spark.sql(
        f"CREATE TABLE {table} (id STRING, `{column}` STRING) PARTITIONED BY (`{column}`) "
        "TBLPROPERTIES ('write.wap.enabled' = 'true')"
    )
    values = ["2026-11-28", "_temporary", ".part", "", None]
    rows = [(str(number), value) for number, value in enumerate(values * 2)]
    frame = spark.createDataFrame(rows, f"id STRING, `{column}` STRING")

    def attempt():
        with active_context(Context("e1", "", {}, "heavy", 1, 1, None, "scratch/")):
            append_once(frame, table)

    killed_after(monkeypatch, "stage")
    with pytest.raises(KilledError):
        attempt()
    monkeypatch.undo()
    attempt()

    published = spark.newSession().table(table)
    assert sorted(map(tuple, published.collect()), key=lambda row: int(row[0])) == rows
    files = spark.sql(f"SELECT file_path, record_count FROM {table}.files").collect()
    assert sum(file.record_count for file in files) == len(rows)
    assert any(f"/{column}=_temporary/" in file.file_path for file in files)
    summary = spark.sql(
        f"SELECT summary FROM {table}.snapshots WHERE summary['published-wap-id'] IS NOT NULL OR "
        "summary['wap.id'] IS NOT NULL"
    ).collect()
    assert {int(row.summary["added-records"]) for row in summary} == {len(rows)}


@pytest.mark.rule("10.append-once.iceberg")
def test_10_staged_rows_of_a_dead_attempt_are_invisible_and_the_next_one_publishes_them(spark, table, monkeypatch):
    killed_after(monkeypatch, "stage")
    with pytest.raises(KilledError):
        append(spark, table, attempt=2)
    assert contents(spark, table) == []
    monkeypatch.undo()
    append(spark, table, attempt=3)
    assert contents(spark, table) == rows_of("e1", 2)
    assert staged(spark, table) == 1


@pytest.mark.rule("10.append-once.iceberg")
def test_10_no_row_is_lost_or_doubled_by_processes_that_die(spark, table, monkeypatch):
    """Each envelope is attempted until an attempt ends; before that attempts die right before or right after any step."""
    chance = random.Random(14)
    deaths = 0

    def dying(original):
        def step(*arguments):
            nonlocal deaths
            fate = chance.random() if deaths < KILLS else 1.0
            if fate < 0.2:
                deaths += 1
                raise KilledError
            result = original(*arguments)
            if fate < 0.4:
                deaths += 1
                raise KilledError
            return result

        return step

    for name in STEPS:
        monkeypatch.setattr(IcebergTable, name, dying(getattr(IcebergTable, name)))
    envelopes = 0
    while deaths < KILLS:
        envelopes += 1
        for attempt in range(1, 100):
            try:
                append(spark, table, f"e{envelopes}", attempt=attempt)
                break
            except KilledError:
                continue
    monkeypatch.undo()
    found = contents(spark, table)
    by_envelope = {name: attempt for name, _, attempt in found}
    assert set(by_envelope) == {f"e{number}" for number in range(1, envelopes + 1)}
    assert found == sorted(row for name, attempt in by_envelope.items() for row in rows_of(name, attempt))


@pytest.mark.rule("10.append-once.iceberg")
@pytest.mark.parametrize("is_empty", [True, False])
@pytest.mark.parametrize(
    ("step", "calls", "counts"), [("find", 1, 2), ("stage", 1, 2), ("find", 2, 3), ("publish", 1, 3)]
)
def test_10_of_two_attempts_at_the_same_time_one_counts(spark, table, monkeypatch, step, calls, counts, is_empty):
    """Attempt 2 overtakes attempt 3 right before one of its steps, as after a driver that is taken for dead.

    It publishes what attempt 3 has staged by then.
    """
    if not is_empty:  # the first snapshot of a table is published by moving to it, later ones by a new one
        append(spark, table, "e0")
    original, left = getattr(IcebergTable, step), [calls]

    def overtake(*arguments):
        left[0] -= 1
        if not left[0]:
            append(spark.newSession(), table, attempt=2)
        return original(*arguments)

    monkeypatch.setattr(IcebergTable, step, overtake)
    append(spark, table, attempt=3)

    assert left[0] <= 0
    assert [row for row in contents(spark, table) if row[0] == "e1"] == rows_of("e1", counts)


@pytest.mark.rule("10.append-once.iceberg")
def test_10_iceberg_refuses_the_second_snapshot_of_a_key(spark, table):
    """Two drivers have each staged a snapshot, and each publishes its own."""
    target = IcebergTable(spark, table)
    for attempt in (1, 2):
        target.stage(spark.createDataFrame(rows_of("e1", attempt), "id STRING, n INT, attempt INT"), "key")
    first, second = target.find("key")
    target.publish(second.id)
    with pytest.raises(Exception, match="DuplicateWAPCommitException"):
        target.publish(first.id)
    assert [snapshot.is_published for snapshot in target.find("key")] == [False, True]
    assert contents(spark, table) == rows_of("e1", 2)


@pytest.mark.rule("10.append-once.iceberg")
def test_10_calls_of_several_envelopes_publish_at_the_same_time(spark, table):
    """Their commits conflict, and each is repeated."""
    with ThreadPoolExecutor(6) as pool:
        results = [pool.submit(append, spark.newSession(), table, f"e{number}") for number in range(12)]
        for result in results:
            result.result()
    assert contents(spark, table) == sorted((f"e{number}", 0, 1) for number in range(12))


def test_10_an_append_of_no_rows_is_one(spark, table):
    append(spark, table, rows=0)
    append(spark, table, attempt=2)
    assert contents(spark, table) == []


@pytest.mark.rule("10.append-once.iceberg")
def test_10_a_table_that_stages_nothing_is_refused_and_unchanged(spark, table):
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.wap.enabled')")
    with pytest.raises(TableError, match=rf"ALTER TABLE {table} SET TBLPROPERTIES \('write.wap.enabled' = 'true'\)"):
        append(spark, table)
    assert contents(spark, table) == []


@pytest.mark.rule("10.append-once.iceberg")
def test_10_other_writes_of_the_job_do_not_get_the_key(spark, table, monkeypatch):
    other, original = f"{table}b", DataFrameWriterV2.append
    spark.sql(f"CREATE TABLE {other} (id STRING) TBLPROPERTIES ('write.wap.enabled' = 'true')")

    def append_beside(writer):
        monkeypatch.undo()
        spark.createDataFrame([("x",)], "id STRING").writeTo(other).append()
        original(writer)

    monkeypatch.setattr(DataFrameWriterV2, "append", append_beside)
    append(spark, table)
    assert [row.id for row in spark.newSession().table(other).collect()] == ["x"]
    assert contents(spark, table) == rows_of("e1", 1)


def test_10_the_frame_stays_cached_and_no_view_is_left(spark, table):
    frame = spark.createDataFrame(rows_of("e1", 1), "id STRING, n INT, attempt INT").cache()
    frame.count()
    with active_context(Context("e1", "", {}, "heavy", 1, 1, None, "scratch/")):
        append_once(frame, table)
    assert "InMemoryTableScan" in frame.select("id")._jdf.queryExecution().executedPlan().toString()
    assert spark.catalog.listTables() == []
    frame.unpersist()


def test_10_the_session_of_the_job_reads_what_it_appended(spark, table):
    session = spark.newSession()
    assert session.table(table).count() == 0
    append(session, table)
    assert session.table(table).count() == 1


@pytest.mark.rule("10.append-once.iceberg.expiry")
def test_10_an_expiry_takes_staged_snapshots_and_no_published_rows(spark, table, monkeypatch):
    append(spark, table, "e0")
    append(spark, table, "e1")
    killed_after(monkeypatch, "stage")
    with pytest.raises(KilledError):
        append(spark, table, "e2", attempt=2)
    monkeypatch.undo()
    expire(spark, table)
    assert contents(spark, table) == [("e0", 0, 1), ("e1", 0, 1)]
    append(spark, table, "e2", attempt=3)
    assert contents(spark, table) == [("e0", 0, 1), ("e1", 0, 1), *rows_of("e2", 3)]


@pytest.mark.rule("10.append-once.iceberg.expiry")
def test_10_a_call_is_forgotten_with_its_snapshot(spark, table):
    """The limit that the documents state."""
    append(spark, table, "e0")
    append(spark, table, "e1")
    expire(spark, table)
    append(spark, table, "e0")
    assert contents(spark, table) == [("e0", 0, 1), ("e0", 0, 1), ("e1", 0, 1)]


@pytest.mark.rule("10.append-once.iceberg")
def test_10_a_call_that_was_rolled_back_publishes_again(spark, table):
    append(spark, table, "e0")
    (before,) = spark.sql(f"SELECT snapshot_id FROM {table}.history").collect()
    append(spark, table, "e1", attempt=2)
    name = table.removeprefix("iceberg.")
    spark.sql(f"REFRESH TABLE {table}")
    spark.sql(f"CALL iceberg.system.rollback_to_snapshot('{name}', {before.snapshot_id})")
    assert contents(spark, table) == rows_of("e0", 1)
    append(spark, table, "e1", attempt=3)
    assert contents(spark, table) == [*rows_of("e0", 1), *rows_of("e1", 2)]


def test_10_partitions_are_those_of_the_table(spark, table):
    with pytest.raises(ValueError, match="has its own partitions; leave partition_by out"):
        append(spark, table, partition_by=["n"])
