"""The ports of Spark drivers on this machine: other users reach them, and get nothing."""

import json
import os
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from asya_cli.main import app
from tests.doubles import doors
from tests.paths import PROJECT

pytestmark = pytest.mark.spark

PAGE = (PROJECT / "docs" / "security.md").read_text()


def test_a_stranger_reads_no_cached_block_of_the_kit(spark: SparkSession) -> None:
    card = spark.sparkContext.parallelize(["4111111111111111"], 1).cache()
    assert card.count() == 1
    environment = spark._jvm.org.apache.spark.SparkEnv.get()  # type: ignore[union-attr]
    ports = environment.blockManager().blockTransferService().port(), environment.rpcEnv().address().port()

    answers = [doors.asked_for_a_block(port, f"rdd_{card.id()}_0") for port in ports]

    card.unpersist()
    assert all(doors.CHALLENGED in answer for answer in answers), answers


def test_the_kit_listens_on_loopback_alone_and_keeps_its_files_to_itself(spark: SparkSession) -> None:
    folder = Path(spark.conf.get("spark.local.dir") or "/").parent

    assert spark.sparkContext.parallelize([1, 2], 2).map(abs).sum() == 3  # starts the workers of Python
    # A local cloud of other tests may be a child of this process, too.
    found = doors.doors(*(child.pid for child in psutil.Process().children() if child.name() == "java"))

    assert {door.program for door in found} == doors.declared(PAGE, "test kit")
    assert {door.address for door in doors.doors(os.getpid())} == {"127.0.0.1"}
    assert folder.stat().st_mode & 0o077 == 0


MESH = "{namespace: doors, code: handlers, jobs: jobs, actors: {look: {spark: {job: looking.look}}}}"
JOB = """
import os
import doors

def look(spark, payload):
    rows = spark.sparkContext.parallelize(["4111111111111111"], 1).cache()
    rows.map(len).count()
    found = doors.doors(os.getpid())
    ports = [door.port for door in found if door.program == "java"]
    answers = [doors.asked_for_a_block(port, f"rdd_{rows.id()}_0").decode(errors="replace") for port in ports]
    folder = os.path.dirname(spark.conf.get("spark.local.dir"))
    yield ("SET", ".route.next", [])
    names = {"programs": [door.program for door in found], "addresses": [door.address for door in found]}
    yield {**names, "answers": answers, "mode": os.stat(folder).st_mode & 0o777}
"""


def test_a_stranger_reads_no_cached_block_of_asya_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("handlers", "jobs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "jobs" / "looking.py").write_text(JOB)
    (tmp_path / "jobs" / "doors.py").write_text(Path(doors.__file__).read_text())
    (tmp_path / "mesh.yaml").write_text(MESH)
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["run", "looking.look", "--payload", "{}", "--json"])

    assert result.exit_code == 0, result.stdout
    [frame] = json.loads(result.stdout)["frames"]
    looked = frame["payload"]
    assert set(looked["programs"]) == doors.declared(PAGE, "asya run")
    assert set(looked["addresses"]) == {"127.0.0.1"}
    assert looked["mode"] & 0o077 == 0
    # The gateway of py4j is the third, and waits for its secret.
    assert len(looked["answers"]) == 3
    answered = [answer for answer in looked["answers"] if answer]
    assert len(answered) == 2
    assert all(doors.CHALLENGED.decode() in answer for answer in answered), answered
