"""Replaced and merged rows are there once, wherever a process dies and whoever commits meanwhile (`protocol §10.branches`)."""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import pytest

from asya_spark.context import Context, active_context
from asya_spark.tables import TableError, merge_once, read, replace_once
from asya_spark.tables.iceberg import IcebergTable

KILLS = 200 if os.environ.get("ASYA_FULL_SIZE") else 20
STEPS = ("branch", "has", "replace", "merge", "take", "drop", "branches")


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def table(spark):
    name = f"iceberg.sales.days{next(_numbers)}"
    spark.sql(f"CREATE TABLE {name} (id STRING, n INT, day STRING) PARTITIONED BY (day)")
    return name


_numbers = count()


def hop(name, attempt=1):
    return Context(name, "", {}, "heavy", 1, attempt, None, "scratch/")


def replaced(spark, table, name, rows, day="d1", attempt=1):
    with active_context(hop(name, attempt)):
        frame = spark.createDataFrame(
            [(f"{name}.{attempt}", n, day) for n in range(rows)], "id STRING, n INT, day STRING"
        )
        replace_once(frame, table, where={"day": day})


def merged(spark, table, name, rows, attempt=1):
    """Adds one to `n` of each row, by what it reads: a merge that happens twice shows."""
    with active_context(hop(name, attempt)):
        merge_once(spark.createDataFrame(rows, "id STRING, n INT, day STRING"), table, on=["id"])


def contents(spark, table):
    spark.sql(f"REFRESH TABLE {table}")
    return sorted((row.id, row.n, row.day) for row in read(spark.newSession(), table).collect())


def branches(spark, table):
    spark.sql(f"REFRESH TABLE {table}")
    return [row.name for row in spark.sql(f"SELECT name FROM {table}.refs").collect()]


@pytest.mark.rule("10.branches.iceberg")
def test_10_a_day_is_replaced_once_by_each_call_and_other_days_stay(spark, table):
    replaced(spark, table, "other", 1, "d2")
    replaced(spark, table, "a", 3)
    replaced(spark, table, "a", 1, attempt=2)
    assert contents(spark, table) == [("a.1", 0, "d1"), ("a.1", 1, "d1"), ("a.1", 2, "d1"), ("other.1", 0, "d2")]
    replaced(spark, table, "b", 1)
    replaced(spark, table, "a", 2, attempt=3)
    assert contents(spark, table) == [("b.1", 0, "d1"), ("other.1", 0, "d2")]
    replaced(spark, table, "empty", 0)
    assert contents(spark, table) == [("other.1", 0, "d2")]
    assert branches(spark, table) == ["main"]


@pytest.mark.rule("10.branches.iceberg")
def test_10_a_row_outside_fails_the_call_and_nothing_changes(spark, table):
    replaced(spark, table, "a", 1)
    frame = spark.createDataFrame([("b", 1, "d1"), ("b", 2, "d2")], "id STRING, n INT, day STRING")
    with active_context(hop("b")), pytest.raises(TableError, match="1 of 2 rows are outside"):
        replace_once(frame, table, where={"day": "d1"})
    assert contents(spark, table) == [("a.1", 0, "d1")]
    assert branches(spark, table) == ["main"]


@pytest.mark.rule("10.branches.iceberg")
def test_10_rows_are_updated_and_inserted_once(spark, table):
    replaced(spark, table, "a", 1)
    for attempt in (1, 2):
        merged(spark, table, "m", [("a.1", 10 * attempt, "d1"), ("new", attempt, None), (None, attempt, "d3")], attempt)
    merged(spark, table, "n", [(None, 7, "d3")])
    assert contents_with_nulls(spark, table) == {("a.1", 10, "d1"), ("new", 1, None), (None, 7, "d3")}


def contents_with_nulls(spark, table):
    return {(row.id, row.n, row.day) for row in read(spark.newSession(), table).collect()}


@pytest.mark.rule("10.branches.iceberg")
@pytest.mark.parametrize("step", ["has", "merge", "take"])
def test_10_a_merge_that_meets_another_commit_is_repeated_on_what_that_left(spark, table, monkeypatch, step, capsys):
    replaced(spark, table, "a", 1)
    original, met = getattr(IcebergTable, step), []

    def meeting(self, *arguments):
        if not met:
            met.append(True)
            replaced(spark, table, "b", 2)
        return original(self, *arguments)

    monkeypatch.setattr(IcebergTable, step, meeting)
    merged(spark, table, "m", [("b.1", 5, "d9")])
    # Two rows have this id: both are updated.
    assert contents(spark, table) == [("b.1", 5, "d9"), ("b.1", 5, "d9")]
    assert "another commit came first" in capsys.readouterr().out


@pytest.mark.rule("10.branches.iceberg")
@pytest.mark.parametrize("step", ["branch", "has", "replace", "take"])
def test_10_of_two_attempts_at_the_same_time_one_counts(spark, table, monkeypatch, step):
    replaced(spark, table, "before", 1)
    original, met = getattr(IcebergTable, step), []

    def meeting(self, *arguments):
        if not met:
            met.append(True)
            replaced(spark, table, "a", 2, attempt=2)
            replaced(spark, table, "b", 1)
        return original(self, *arguments)

    monkeypatch.setattr(IcebergTable, step, meeting)
    replaced(spark, table, "a", 3)
    assert met
    assert contents(spark, table) == [("b.1", 0, "d1")]


@pytest.mark.rule("10.branches.iceberg")
def test_10_no_change_is_lost_or_made_twice_by_processes_that_die(spark, table, monkeypatch):
    chance, deaths = random.Random(14), 0

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

    for name in STEPS:
        monkeypatch.setattr(IcebergTable, name, dying(getattr(IcebergTable, name)))
    days = 0
    while deaths < KILLS:
        days += 1
        until_it_ends(lambda attempt, day=days: replaced(spark, table, f"r{day}", 1, f"d{day}", attempt))
        rows = [(f"m{days}", 1, f"d{days}")]
        until_it_ends(lambda attempt, day=days, rows=rows: merged(spark, table, f"m{day}", rows, attempt))
    monkeypatch.undo()
    found = {}
    for identity, _, day in contents(spark, table):
        found.setdefault(day, []).append(identity.partition(".")[0])
    assert found == {f"d{day}": [f"m{day}", f"r{day}"] for day in range(1, days + 1)}


def until_it_ends(write):
    for attempt in count(1):
        with suppress(KilledError):
            write(attempt)
            return


@pytest.mark.rule("10.branches.iceberg")
def test_10_calls_of_several_envelopes_at_the_same_time_are_all_there(spark, table):
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda day: replaced(spark, table, f"a{day}", 1, f"d{day}"), range(3)))
    assert [row[2] for row in contents(spark, table)] == ["d0", "d1", "d2"]


def test_10_a_folder_has_no_merge_and_an_iceberg_table_no_layout(spark, table, tmp_path):
    frame = spark.createDataFrame([("a", 1, "d1")], "id STRING, n INT, day STRING")
    with active_context(hop("a")):
        with pytest.raises(TableError, match="replace whole partitions with replace_once"):
            merge_once(frame, f"file://{tmp_path}/folder", on=["id"])
        with pytest.raises(ValueError, match="name columns of the frame"):
            merge_once(frame, table, on=["dya"])
        with pytest.raises(ValueError, match="leave those options out"):
            replace_once(frame, table, where={"day": "d1"}, layout="versioned")
