"""The project of `docs/how-to/use-connectors.md` does what the page says, and a driver of a database comes in a jar of its own."""

import json
import os
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from asya.testing import Mesh
from asya_cli.main import app
from tests.doubles.snippets import write_project

pytestmark = pytest.mark.spark

H2 = Path(os.environ.get("H2_JAR", "/usr/share/java/h2.jar"))  # as Debian's libh2-java has it
MESH = """
namespace: own
jobs: jobs
actors:
  pass-through:
    spark:
      job: passing.work
      conf: {spark.jars: "s3://asya-own-123456789012-eu-west-1/data/jars/h2.jar"}
    access: [{bucket: data, read: ["jars/*"]}]
    batch: {window: 0s}
"""
JOB = """
OPTIONS = {"url": "jdbc:h2:mem:own;DB_CLOSE_DELAY=-1", "driver": "org.h2.Driver", "dbtable": "numbers"}


def work(spark, payload):
    spark.range(5).write.format("jdbc").options(**OPTIONS).mode("overwrite").save()
    return {"sum": spark.read.format("jdbc").options(**OPTIONS).load().groupBy().sum().first()[0]}
"""


@pytest.mark.filterwarnings("ignore:Jobs of the test kit run without")
def test_the_tests_of_the_page_pass(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project("use-connectors.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "orders", raising=False)
    runpy.run_path("test_orders.py")["test_a_day_is_loaded_once"](spark)


@pytest.mark.skipif(not H2.exists(), reason=f"there is no {H2} on this machine (apt-get install libh2-java)")
def test_a_driver_comes_in_a_jar(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("jobs", "data/jars"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "mesh.yaml").write_text(MESH)
    (tmp_path / "jobs" / "passing.py").write_text(JOB)
    shutil.copy(H2, tmp_path / "data" / "jars" / "h2.jar")

    assert Mesh(tmp_path / "mesh.yaml", data=tmp_path / "data").send("pass-through", {}).result == {"sum": 10}

    arguments = [
        "run",
        "pass-through",
        "--mesh",
        str(tmp_path / "mesh.yaml"),
        "--data",
        str(tmp_path / "data"),
        "--json",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["frames"][0]["payload"] == {"sum": 10}
