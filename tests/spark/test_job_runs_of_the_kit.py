"""The test kit runs jobs: the real dispatcher, job library and completion, on the Spark session of the process."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import freezegun
import pytest
from moto import mock_aws
from pyspark.sql import SparkSession

from asya.testing import Mesh
from tests.flights_sample import write_dataset
from tests.paths import PROJECT

pytestmark = pytest.mark.spark

MESH = """
namespace: counting
code: handlers
jobs: jobs
defaults:
  resiliency:
    policies: {later: {max_attempts: 3, initial_delay: 1s}}
    rules: [{errors: [ConnectionError], policy: later}]
actors:
  check: {handler: shared.check}
  count: {spark: {job: shared.count}, env: {UNIT: rows}, batch: {window: 0s}}
  call: {spark: {job: shared.call}, batch: {window: 0s}}
  double: {spark: {job: shared.double, payload_schema: n LONG}, batch: {window: 0s}}
"""
HANDLERS = """
def check(payload):
    return {**payload, "checked": True}
"""
JOBS = """
import os
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

def square(n):
    return n * n

def count(spark, payload):
    squares = spark.sparkContext.parallelize(range(payload["n"])).map(square).sum()
    return {**payload, os.environ["UNIT"]: spark.range(payload["n"]).count(), "squares": squares}

def call(spark, payload):
    import boto3
    keys = spark.sparkContext.parallelize([1]).map(lambda _: os.environ["AWS_ACCESS_KEY_ID"]).collect()
    boto3.client("sqs").list_queues()
    return {"keys": keys}

def double(spark, envelopes: DataFrame) -> DataFrame:
    return envelopes.select("id", F.struct((F.col("payload.n") * 2).alias("double")).alias("payload"))
"""


@pytest.fixture
def mesh(tmp_path: Path, spark: SparkSession) -> Mesh:
    """A mesh whose handlers and jobs have a module of the same name."""
    for folder, code in (("handlers", HANDLERS), ("jobs", JOBS)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shared.py").write_text(code)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def test_light_and_heavy_actors_share_a_route(mesh: Mesh) -> None:
    run = mesh.send("check", {"n": 5}, then=["count", "check"])
    assert run.result == {"n": 5, "checked": True, "rows": 5, "squares": 30}
    assert run.actors == ("check", "count", "check")


def test_a_dataframe_job_gives_columns(mesh: Mesh) -> None:
    assert mesh.send("double", {"n": 4}).result == {"double": 8}


def test_a_failed_call_of_a_job_is_retried(mesh: Mesh) -> None:
    mesh.fail("count", ConnectionError)
    run = mesh.send("count", {"n": 1})
    assert run.result["rows"] == 1
    assert [(error.actor, error.type, error.is_final) for error in run.errors] == [("count", "ConnectionError", False)]


def test_a_driver_that_dies_fails_its_run(mesh: Mesh) -> None:
    mesh.kill_during("count")
    run = mesh.send("count", {"n": 1})
    assert run.status == "failed"
    assert (run.errors[-1].type, "ExitCode: 137" in run.errors[-1].message) == ("SparkJobFailed", True)
    assert mesh.send("count", {"n": 1}).result["rows"] == 1


def test_a_job_calls_no_aws(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIADEVELOPER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    [error] = mesh.send("call", {}).errors
    assert "the test kit lets no call of AWS out" in error.message
    with mock_aws():
        assert mesh.send("call", {}).result == {"keys": ["asya-testing"]}  # those of Python workers are new processes


def test_jobs_run_in_another_thread_and_while_time_is_frozen(mesh: Mesh) -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(lambda: mesh.send("count", {"n": 2}).result["squares"]).result() == 1
    with freezegun.freeze_time("2027-03-01 10:00"):
        run = mesh.send("check", {"n": 5}, then=["count", "check"])
        assert run.result["squares"] == 30


def test_the_deadline_of_a_job_is_of_the_virtual_time(mesh: Mesh, tmp_path: Path) -> None:
    earlier = Mesh(tmp_path / "mesh.yaml", start=datetime(2020, 1, 1, tzinfo=UTC))
    assert earlier.send("count", {"n": 1}, timeout=600).result["rows"] == 1


def test_the_example_runs_as_a_tool(spark: SparkSession, tmp_path: Path) -> None:
    references = write_dataset(tmp_path, 20)
    run = Mesh(PROJECT / "mesh.yaml", data=tmp_path).call("analyse-flights", {"flights": references["flights"]})
    assert run.actors == ("inspect-dataset", "clean-flights", "split-by-airport", "x-fan-in", "publish-report")
    assert (tmp_path / run.result["report"]).read_bytes().startswith(b"<!doctype html>")
