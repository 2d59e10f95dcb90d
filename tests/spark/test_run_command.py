"""`asya run` on a job: in the environment of job runs, with a Spark of its own."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

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


def test_a_job_gives_its_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("handlers", "jobs", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "jobs" / "lines.py").write_text(JOB)
    (tmp_path / "mesh.yaml").write_text(MESH)
    (tmp_path / "data" / "order.txt").write_text("a\nb\n")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["run", "lines.count", "--payload", "file=order.txt", "--json"])

    assert result.exit_code == 0, result.stdout
    report = json.loads(result.stdout)
    assert [(frame["payload"], frame["next"]) for frame in report["frames"]] == [({"lines": 2}, [])]
