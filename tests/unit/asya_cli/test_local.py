"""`asya local up`: what it prints beside its steps."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from asya_cli.main import app

MESH = "namespace: shop\njobs: jobs\nactors:\n  clean: {spark: {job: clean.clean}}\n"
JOB = "def clean(spark, payload):\n    spark.stop()\n"


def test_up_prints_the_notes_on_code_and_none_on_a_deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "clean.py").write_text(JOB)
    (tmp_path / "mesh.yaml").write_text(MESH)
    monkeypatch.setattr("asya_local.cloud.up", lambda *_: SimpleNamespace(namespace="shop"))

    result = CliRunner().invoke(app, ["local", "up", "--mesh", str(tmp_path / "mesh.yaml")])

    assert result.exit_code == 0, result.output
    [note] = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    assert "jobs/clean.py:2: stop() does nothing in a job of actor 'clean'" in note
    assert "shop takes messages" in result.stdout
