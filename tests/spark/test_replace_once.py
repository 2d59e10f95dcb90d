"""Partitions are replaced once, with the columns of their table (`protocol §10.replace-once`, `§10.tables`).

The order of replacements, deaths and overlaps are in tests/unit/asya_spark/tables/test_replacements.py.
"""

from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import functions

from asya_spark.context import Context, active_context
from asya_spark.tables import TableError, append_once, read, replace_once

pytestmark = pytest.mark.spark

COLUMNS = "id STRING, n INT, day DATE"
DAY, NEXT = date(2026, 1, 1), date(2026, 1, 2)


def hop(name="e1", *, attempt=1, generation=0, is_run=False):
    return Context(
        name, "", {}, "heavy", 1, attempt, None, "scratch/", generation=generation, is_run=is_run, run="ns.heavy.7"
    )


def replaced(spark, table, envelope, rows, day=DAY, columns=COLUMNS, where=None, **options):
    with active_context(envelope):
        frame = spark.createDataFrame([(envelope.id, n, day) for n in range(rows)], columns)
        replace_once(frame.repartition(2), table, where=where or {"day": day}, **options)


def appended(spark, table, envelope, rows, **options):
    with active_context(envelope):
        frame = spark.createDataFrame([(envelope.id, 10 + n, DAY) for n in range(rows)], COLUMNS)
        append_once(frame, table, partition_by=["day"], **options)


def contents(frame):
    return sorted((row.id, row.n, row.day) for row in frame.collect())


@pytest.fixture
def table(data_folder):
    return f"file://{data_folder}/tables/clean"


@pytest.fixture(params=["plain", "versioned"])
def layout(request):
    return request.param


@pytest.mark.rule("10.replace-once")
def test_10_a_day_has_the_rows_of_the_last_new_call_and_other_days_stay(spark, table, layout):
    replaced(spark, table, hop("other"), 1, NEXT, layout=layout)
    replaced(spark, table, hop("first"), 3, layout=layout)
    replaced(spark, table, hop("second"), 2, layout=layout)
    replaced(spark, table, hop("first", attempt=2), 5, layout=layout)
    assert contents(read(spark, table)) == [("other", 0, NEXT), ("second", 0, DAY), ("second", 1, DAY)]
    replaced(spark, table, hop("first", generation=1), 1, layout=layout)
    assert contents(read(spark, table)) == [("first", 0, DAY), ("other", 0, NEXT)]
    replaced(spark, table, hop("empty"), 0, layout=layout)
    assert contents(read(spark, table)) == [("other", 0, NEXT)]


@pytest.mark.rule("10.append-once", "10.replace-once")
@pytest.mark.parametrize("name", ["rows", ""])
def test_10_an_append_and_a_replacement_of_one_name_are_two_calls(spark, table, name):
    """Without a name: an attempt that makes its calls in another order."""
    for attempt in (1, 2):
        envelope = hop(attempt=attempt)
        calls = [
            partial(replaced, spark, table, envelope, 2, name=name),
            partial(appended, spark, table, envelope, 1, name=name),
        ]
        for call in calls if attempt == 1 else calls[::-1]:
            call()
        assert len(contents(read(spark, table))) == 3


@pytest.mark.rule("10.replace-once.plain")
def test_10_any_engine_reads_a_plain_table_and_what_spark_had_written_there_is_replaced(spark, table):
    frame = spark.createDataFrame([("script", n, day) for n in range(2) for day in (DAY, NEXT)], COLUMNS)
    frame.write.partitionBy("day").parquet(table)
    replaced(spark, table, hop(), 1)
    expected = [("e1", 0, DAY), ("script", 0, NEXT), ("script", 1, NEXT)]
    assert contents(spark.read.parquet(table)) == contents(read(spark, table)) == expected


@pytest.mark.rule("10.replace-once.versioned")
def test_10_a_plain_reader_finds_nothing_of_a_versioned_table(spark, table):
    replaced(spark, table, hop(), 3, layout="versioned")
    assert {path.name for path in Path(table.removeprefix("file://")).iterdir()} == {"_asya"}


@pytest.mark.rule("10.replace-once.where")
def test_10_a_row_outside_the_partition_fails_the_call_and_nothing_changes(spark, table, layout):
    replaced(spark, table, hop(), 1, layout=layout)
    rows = [("e2", 1, DAY), ("e2", 2, NEXT), ("e2", 3, None)]
    with (
        active_context(hop("e2")),
        pytest.raises(TableError, match=r"2 of 3 rows are outside .*2026, 1, 1.* nothing of .*clean is replaced"),
    ):
        replace_once(spark.createDataFrame(rows, COLUMNS), table, where={"day": DAY}, layout=layout)
    assert contents(read(spark, table)) == [("e1", 0, DAY)]


VALUES = [
    ("day STRING", "a/b=c %"),
    ("day STRING", "007"),
    ("day STRING", None),
    ("day INT", -3),
    ("day BIGINT", 2**40),
    ("day BOOLEAN", True),
    ("day DECIMAL(20,4)", Decimal("1.5000")),
    ("day DATE", DAY),
    ("day DATE", "2026-01-01"),
    ("day TIMESTAMP", "2026-01-01 03:04:05.678"),
    ("`a b` STRING", "x"),
    ("`dot.ted` INT", 1),
]


@pytest.mark.rule("10.replace-once.where")
@pytest.mark.parametrize(
    ("layout", "column", "value"), [("plain", *each) for each in VALUES] + [("versioned", *each) for each in VALUES[:3]]
)
def test_10_any_value_names_its_partition(spark, table, layout, column, value):
    name = column.rpartition(" ")[0].strip("`")
    for call, rows in (("first", 2), ("second", 1)):
        with active_context(hop(call)):
            frame = spark.range(rows).withColumn(name, functions.lit(value).cast(column.rpartition(" ")[2]))
            replace_once(frame, table, where={name: value}, layout=layout)
    (row,) = read(spark, table).collect()
    assert row[name] == frame.first()[name]


@pytest.mark.parametrize(
    ("columns", "where", "expected"),
    [
        (COLUMNS, {"dya": DAY}, "names 'dya', which is no column of the frame: id, n, day"),
        (COLUMNS, {"day": "some day"}, "some day"),
        ("id STRING, n DOUBLE, day DATE", {"n": 1.0}, "'n' is double, whose values make no folders"),
        (COLUMNS, {"id": ""}, "readers find no empty text for 'id'"),
    ],
)
def test_10_a_partition_that_cannot_be_is_named_before_anything_is_written(spark, table, columns, where, expected):
    with active_context(hop()), pytest.raises(ValueError, match=expected):
        replace_once(spark.createDataFrame([], columns), table, where=where)
    assert not list(Path(table.removeprefix("file://")).rglob("*.parquet"))


def test_10_a_call_without_a_partition_is_refused(spark, table):
    with active_context(hop()), pytest.raises(ValueError, match="where names no partition"):
        replace_once(spark.createDataFrame([], COLUMNS), table, where={})


@pytest.mark.rule("10.tables")
@pytest.mark.parametrize(
    "write",
    [partial(append_once, partition_by=["day"]), partial(replace_once, where={"day": DAY})],
    ids=["append", "replace"],
)
def test_10_rows_that_would_break_the_table_are_refused_and_every_difference_is_named(spark, table, write):
    replaced(spark, table, hop(), 1)
    frame = spark.createDataFrame([("x", 1.5, DAY)], "n STRING, c DOUBLE, day DATE")
    with active_context(hop("e2")), pytest.raises(TableError) as caught:
        write(frame, table)
    for part in (
        "clean",
        "'n' is string in the frame, and int in the table",
        "no column 'c' (double)",
        "no column 'id'",
    ):
        assert part in str(caught.value)
    assert contents(read(spark, table)) == [("e1", 0, DAY)]


@pytest.mark.rule("10.tables")
def test_10_columns_are_added_and_filled_if_the_call_says_so(spark, table, layout):
    replaced(spark, table, hop("old"), 1, layout=layout)
    frame = spark.createDataFrame([(7, 1.5, NEXT)], "n SMALLINT, c DOUBLE, day DATE")
    with active_context(hop("new")):
        replace_once(frame, table, where={"day": NEXT}, layout=layout, evolve="add")
    found = {row.day: row.asDict() for row in read(spark, table).collect()}
    assert found[DAY] == {"id": "old", "n": 0, "day": DAY, "c": None}
    assert found[NEXT] == {"id": None, "n": 7, "day": NEXT, "c": 1.5}


@pytest.mark.rule("10.tables")
def test_10_a_table_keeps_its_layout_and_its_partitions(spark, table):
    replaced(spark, table, hop(), 1)
    for message, options in (
        ("is a plain table", {"layout": "versioned"}),
        (r"has the partitions \['day'\], and this call writes \['day', 'n'\]", {"partition_by": ["n"]}),
        (r"has the partitions \['day'\], and this call writes \['id'\]", {"where": {"id": "e2"}}),
    ):
        with pytest.raises(TableError, match=message):
            replaced(spark, table, hop("e2"), 1, **options)
    with active_context(hop("e3")), pytest.raises(TableError, match="has the partitions"):
        append_once(spark.createDataFrame([], COLUMNS), table)


@pytest.mark.rule("10.tables")
def test_10_an_append_to_a_versioned_table_is_refused(spark, table):
    replaced(spark, table, hop(), 1, layout="versioned")
    with active_context(hop("e2")), pytest.raises(TableError, match="append_once does not write such a table"):
        append_once(spark.createDataFrame([], COLUMNS), table, partition_by=["day"])


@pytest.mark.rule("10.tables")
def test_10_a_day_of_appends_is_repaired(spark, table):
    for name in ("a", "b"):
        with active_context(hop(name)):
            append_once(spark.createDataFrame([(name, 1, DAY)], COLUMNS), table, partition_by=["day"])
    replaced(spark, table, hop("repair"), 1)
    with active_context(hop("c")):
        append_once(spark.createDataFrame([("c", 1, DAY)], COLUMNS), table, partition_by=["day"])
    assert contents(read(spark, table)) == [("c", 1, DAY), ("repair", 0, DAY)]


@pytest.mark.rule("10.tables.commits")
def test_10_the_commits_are_a_table_that_says_who_wrote_what(spark, table):
    replaced(spark, table, hop("a"), 3)
    with active_context(hop("b", attempt=2)):
        append_once(spark.createDataFrame([("b", 1, DAY)], COLUMNS), table, partition_by=["day"])
    rows = spark.read.json(f"{table}/_asya/commits").select("call.id", "call.attempt", "call.run", "partition", "rows")
    assert sorted(map(tuple, rows.collect())) == [
        ("a", 1, "ns.heavy.7", "day=2026-01-01", 3),
        ("b", 2, "ns.heavy.7", "", 1),
    ]


@pytest.mark.rule("10.replace-once")
def test_10_a_dataframe_job_is_told_why_it_cannot(spark, table):
    with pytest.raises(TableError, match="for jobs with one payload"):
        replaced(spark, table, hop(is_run=True), 1)
