"""`asya run` on a job: in the environment of job runs, with a Spark of its own."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from asya.testing import Mesh
from asya_cli.main import app

pytestmark = pytest.mark.spark

MESH = """
namespace: counting
code: handlers
jobs: jobs
actors:
  count: {spark: {job: lines.count}, env: {UNIT: lines}}
"""
JOB = """
import os

def count(spark, payload):
    text = spark.read.text(os.environ["ASYA_DATA_URI"] + payload["file"])
    yield ("SET", ".route.next", [])
    yield {os.environ["UNIT"]: text.count()}
"""


def write_mesh(folder: Path, mesh: str, **jobs: str) -> None:
    for name in ("handlers", "jobs", "data"):
        (folder / name).mkdir()
    for name, code in jobs.items():
        (folder / "jobs" / f"{name}.py").write_text(code)
    (folder / "mesh.yaml").write_text(mesh)


def test_a_job_gives_its_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mesh(tmp_path, MESH, lines=JOB)
    (tmp_path / "data" / "order.txt").write_text("a\nb\n")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["run", "lines.count", "--payload", "file=order.txt", "--json"])

    assert result.exit_code == 0, result.stdout
    report = json.loads(result.stdout)
    assert [(frame["payload"], frame["next"]) for frame in report["frames"]] == [({"lines": 2}, [])]


SETTLED = """
namespace: settled
code: handlers
jobs: jobs
actors:
  settled:
    batch: {window: 0s}
    spark:
      job: looking.look
      conf:
        spark.sql.ansi.enabled: false
        spark.sql.shuffle.partitions: 3
        spark.hadoop.own.key: hadoop
        spark.own.key: own
        spark.rdd.compress: true
        spark.ui.enabled: true
        spark.driver.extraJavaOptions: -Dgreeting=good-day
  plain: {spark: {job: looking.look}, batch: {window: 0s}}
"""
LOOKING = """
from asya_spark.tables import append_once

def look(spark, payload):
    try:
        number = spark.sql("SELECT CAST('abc' AS INT)").first()[0]
    except Exception as error:
        number = "refused"
    append_once(spark.range(1).coalesce(1), "rows")
    return {
        "cast": number,
        "partitions": spark.conf.get("spark.sql.shuffle.partitions") == "3",
        "hadoop": spark.sparkContext._jsc.hadoopConfiguration().get("own.key"),
        "own": [spark.conf.get("spark.own.key", None), spark.sparkContext.getConf().get("spark.own.key")],
        "java": spark._jvm.java.lang.System.getProperty("greeting"),
    }
"""
WITH = {"cast": None, "partitions": True, "hadoop": "hadoop", "own": ["own", "own"]}
WITHOUT = {"cast": "refused", "partitions": False, "hadoop": None, "own": [None, None], "java": None}


def test_a_job_has_its_settings_and_each_call_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mesh(tmp_path, SETTLED, looking=LOOKING)
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--id", "one"], ["--id", "one"]):
        result = CliRunner().invoke(app, ["run", "settled", "--json", *options])
        assert result.exit_code == 0, result.output
        [frame] = json.loads(result.stdout)["frames"]
        assert frame["payload"] == {**WITH, "java": "good-day"}
        assert result.stderr.startswith("note: settled: Spark does not heed spark.ui.enabled on this machine: ")

    assert len(list((tmp_path / "data" / "rows").glob("*.parquet"))) == 2, "the third call repeats the second one"


def test_each_run_of_the_kit_has_the_settings_of_its_actor(tmp_path: Path, spark: SparkSession) -> None:
    write_mesh(tmp_path, SETTLED, looking=LOOKING)
    mesh = Mesh(tmp_path / "mesh.yaml", data=tmp_path / "data")
    with pytest.warns(
        UserWarning, match=r"Spark reads spark\.(rdd\.compress|driver\.extraJavaOptions) when its context starts"
    ):
        assert mesh.send("settled", {}).result == {**WITH, "java": None}
    assert mesh.send("plain", {}).result == WITHOUT
    assert spark.conf.get("spark.own.key", None) is None


def test_a_run_of_the_kit_goes_on_without_files_that_the_machine_lacks(tmp_path: Path, spark: SparkSession) -> None:
    lacking = ["s3://elsewhere/own.jar", "local:///usr/share/gone.jar", "https://example.com/own.jar", "/gone.jar"]
    conf = f'conf: {{spark.jars: "{",".join(lacking)}"}}, job: looking.look'
    access = "access: [{bucket: elsewhere, read: ['*']}]"
    mesh = f"namespace: own\njobs: jobs\nactors: {{own: {{spark: {{{conf}}}, {access}, batch: {{window: 0s}}}}}}\n"
    write_mesh(tmp_path, mesh, looking="def look(spark, payload): return spark.range(1).count()\n")
    with pytest.warns(UserWarning, match="Jobs of the test kit run without") as told:
        assert Mesh(tmp_path / "mesh.yaml", data=tmp_path / "data").send("own", {}).result == 1
    assert [str(each.message).split(",")[0].rpartition(" ")[2] for each in told] == lacking
