"""How rows are staged for Iceberg, on the Spark that jobs have: the key reaches one write, and no other one of the session.

tests/iceberg runs whole appends, on the Spark that its jar is for.
"""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriterV2

from asya_spark.calls.sessions import active_session, own_sessions
from asya_spark.tables.iceberg import IcebergTable

pytestmark = pytest.mark.spark

WAP_ID = "spark.wap.id"


@pytest.fixture
def written(monkeypatch):
    """The frames that are written, with the key of their session; nothing is written."""
    frames = []

    def append(writer):
        frame = writer._df
        frames.append((frame, frame.sparkSession.conf.get(WAP_ID, None)))

    monkeypatch.setattr(DataFrameWriterV2, "append", append)
    return frames


@pytest.mark.rule("10.append-once.iceberg")
def test_10_the_key_is_that_of_one_write(spark, written):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    session.udf.register("twice", lambda n: 2 * n, "INT")
    frame = session.sql("SELECT twice(21) AS n")

    IcebergTable(session, "iceberg.sales.orders").stage(frame, "key")

    ((staged, key),) = written
    assert key == "key"
    assert staged.sparkSession.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"
    assert staged.collect() == [(42,)]
    assert session.conf.get(WAP_ID, None) is None
    assert session.catalog.listTables() == []


def test_10_a_cached_frame_stays_cached(spark, written):
    session = spark.newSession()
    frame = session.range(3).cache()
    frame.count()
    IcebergTable(session, "iceberg.sales.orders").stage(frame, "key")
    for each in (frame, written[0][0]):
        assert "InMemoryTableScan" in each.select("id")._jdf.queryExecution().executedPlan().toString()
    frame.unpersist()


def test_10_in_a_call_of_a_run_the_session_stays_that_of_the_envelope(spark, written):
    session = spark.newSession()
    with own_sessions(), active_session(session):
        IcebergTable(session, "iceberg.sales.orders").stage(session.range(3), "key")
        assert SparkSession.active() is session
        assert spark._jvm.org.apache.spark.sql.SparkSession.active().equals(session._jsparkSession)
        assert SparkSession.active().conf.get(WAP_ID, None) is None
    assert written[0][0].count() == 3
