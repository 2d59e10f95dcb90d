"""The page "From a PySpark script to a heavy actor": its code runs, and counts what Spark's own example counts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from asya_infra.mesh_file import load_mesh
from asya_infra.product.places import BUILD
from asya_local.emr.drivers.class_archive import driver_options
from asya_local.emr.drivers.job_environment import spark_home
from asya_local.tools import find_java
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "port-a-pyspark-script.md").read_text()
TEXT = "the whale the sea\nthe ship\n"
COUNTS = {"the": 3, "whale": 1, "sea": 1, "ship": 1}

HASTY = """
import argparse
import numpy as np
from asya_spark import data

def variable(spark, payload):
    data = spark.read.text(data.uri("texts/moby-dick.txt")).collect()

def array(spark, payload):
    return {"centers": [np.array([1.0])]}

def relative(spark, payload):
    spark.read.text("moby-dick.txt")

def arguments(spark, payload):
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("top")
    parser.parse_args([])
"""
HASTY_ERRORS = {
    "variable": "cannot access local variable 'data'",
    "array": "has no form in JSON",
    "relative": "Path does not exist: file:",
    "arguments": "SystemExit: 2",
}


def code(name):
    return "\n\n".join(re.findall(rf"^```python {re.escape(name)}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path, data_folder, monkeypatch):
    (tmp_path / "wordcount.py").write_text(code("jobs/wordcount.py"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wordcount", raising=False)
    (data_folder / "texts").mkdir()
    (data_folder / "texts" / "moby-dick.txt").write_text(TEXT)
    return tmp_path


def test_the_functions_of_the_page_do_what_it_says(spark, folder, data_folder):
    payload = {"text": "texts/moby-dick.txt", "name": "moby"}

    counted = Run(spark, folder / "1", [payload], job="wordcount.count_words")
    saved = Run(spark, folder / "2", [payload], job="wordcount.save_words")
    for attempt in ("3", "4"):
        appended = Run(spark, folder / attempt, [payload], job="wordcount.append_words")
        replaced = Run(
            spark, folder / f"{attempt}-day", [{**payload, "day": "2026-01-01"}], job="wordcount.replace_words"
        )
    each = Run(
        spark,
        folder / "5",
        [{"line": "a b"}, {"line": "c"}],
        job="wordcount.count_each",
        shape="dataframe",
        payload_schema="line STRING",
    )

    assert counted.payloads(0) == [{**payload, "words": COUNTS}]
    assert saved.payloads(0) == [{**payload, "words": "words/moby"}]
    assert appended.payloads(0) == [payload]
    assert replaced.payloads(0) == [{**payload, "day": "2026-01-01", "words": len(COUNTS)}]
    assert (each.payloads(0), each.payloads(1)) == ([{"words": 2}], [{"words": 1}])
    for table in ("words/moby", "tables/words"):
        rows = spark.read.parquet(f"file://{data_folder}/{table}").collect()
        assert {row["word"]: row["count"] for row in rows} == COUNTS
        assert len(rows) == len(COUNTS)


@pytest.mark.parametrize(("name", "error"), HASTY_ERRORS.items())
def test_a_hasty_port_fails_with_an_error_of_the_page(spark, folder, monkeypatch, name, error):
    (folder / "hasty.py").write_text(HASTY)
    monkeypatch.delitem(sys.modules, "hasty", raising=False)
    failed = Run(spark, folder / "1", [{}], job=f"hasty.{name}").heads[0].error
    assert error in f"{failed.type}: {failed.message}"
    assert f"| `{error}` |" in PAGE


def test_a_missing_package_fails_every_envelope_with_an_error_of_the_page(spark, folder, monkeypatch):
    (folder / "hasty.py").write_text("import package_of_the_script")
    monkeypatch.delitem(sys.modules, "hasty", raising=False)
    error = "imports 'package_of_the_script', which is not installed"
    assert error in Run(spark, folder / "1", [{}], job="hasty.count").commit.error.message
    assert f"| `{error.replace('package_of_the_script', 'numpy')}` |" in PAGE


def test_the_script_of_the_page_is_one_that_runs(folder, data_folder):
    path = folder / "script.py"
    path.write_text(code("script"))
    command = [sys.executable, str(path), str(data_folder / "texts" / "moby-dick.txt")]
    java = find_java()
    # A script of one's own starts as fast as a driver.
    environment = {**os.environ, "JAVA_HOME": java, "JDK_JAVA_OPTIONS": driver_options(BUILD, java, spark_home())}
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert sorted(printed.splitlines()) == sorted(f"{word}: {count}" for word, count in COUNTS.items())


def test_the_mesh_file_of_the_page_is_valid(folder):
    (folder / "jobs").mkdir()
    (folder / "wordcount.py").rename(folder / "jobs" / "wordcount.py")
    (match,) = re.findall(r"^```yaml mesh.yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "mesh.yaml").write_text(match)
    assert load_mesh(folder / "mesh.yaml").mesh.actors["count-words"].spark is not None
