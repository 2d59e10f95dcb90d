"""`asya local up`: what it prints beside its steps."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from asya_cli.errors import CommandError, ExitCode
from asya_cli.main import app
from asya_local.state_folder import LocalConnection

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


def test_env_prints_what_a_shell_can_evaluate(tmp_path: Path) -> None:
    values = {name: f"v-{name}" for name in LocalConnection.__dataclass_fields__}
    connection = LocalConnection(**values | {"secret_key": "a'b $c", "data_prefix": "data/"})
    connection.write(tmp_path / "local.json")
    script = f"{CliRunner().invoke(app, ['local', 'env', '--state', str(tmp_path)]).stdout}\nenv"
    shell = {"PATH": os.environ["PATH"], "AWS_PROFILE": "mine", "AWS_SESSION_TOKEN": "old"}
    printed = subprocess.run(["sh", "-ec", script], env=shell, capture_output=True, text=True, check=True).stdout
    variables = dict(line.split("=", 1) for line in printed.splitlines())
    assert variables["AWS_SECRET_ACCESS_KEY"] == "a'b $c"
    assert variables["AWS_ENDPOINT_URL"] == "v-endpoint_url"
    assert variables["ASYA_GATEWAY_URL"] == "v-gateway_url"
    assert variables["ASYA_DATA_URI"] == "s3://v-data_bucket/data/"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & variables.keys()


def test_env_without_a_cloud_says_how_to_start_one(tmp_path: Path) -> None:
    error = CliRunner().invoke(app, ["local", "env", "--state", str(tmp_path)]).exception
    assert isinstance(error, CommandError)
    assert "asya local up" in error.advice
    assert error.code is ExitCode.UNREACHABLE
