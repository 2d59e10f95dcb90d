"""One job gives one answer in `asya run` and in the test kit; `tests/cloud/test_heavy_one_answer.py` has the other two ways."""

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from asya.testing import Mesh
from asya_cli.main import app
from asya_local.emr.local_spark import OF_THE_KIT
from tests.doubles.one_answer import ANSWERS, DATA, MESH, comparable

pytestmark = pytest.mark.spark
ACTORS = pytest.mark.parametrize("actor", ANSWERS)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for reference, body in DATA.items():
        (tmp_path / reference).parent.mkdir(exist_ok=True)
        (tmp_path / reference).write_bytes(body)
    return tmp_path


@ACTORS
def test_a_job_of_the_run_command(actor: str, data: Path) -> None:
    result = CliRunner().invoke(app, ["run", actor, "--mesh", str(MESH / "mesh.yaml"), "--data", str(data), "--json"])
    assert result.exit_code == 0, result.output
    [frame] = json.loads(result.stdout)["frames"]
    assert comparable(frame["payload"]) == ANSWERS[actor]
    assert [line for line in result.stderr.splitlines() if line.startswith("note: ")] == [
        f"note: {actor}: Spark does not heed spark.ui.enabled on this machine: the driver stays closed to other users of "
        "this machine"
    ]


@ACTORS
def test_a_job_of_the_test_kit(actor: str, data: Path, spark: SparkSession) -> None:
    own = ".".join(platform.python_version_tuple()[:2])
    differing = OF_THE_KIT.keys() - {"spark.sql.shuffle.partitions"}  # which the actors set

    def told(answer: Any) -> dict[str, Any]:
        return comparable(answer, but=differing, python=own)

    assert told(Mesh(MESH / "mesh.yaml", data=data).send(actor, {}).result) == told(ANSWERS[actor])
