"""The stand-in in the configuration of the demo: each run has a driver process, and none survives the cloud."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from asya_local.emr.settings import WorkerSettings
from asya_local.processes import cloud_processes, end_all, read_records
from asya_local.servers import EMR, ServerOptions
from tests.cloud.stand_in_cloud import BUCKET, SECONDS, stand_in, until
from tests.doubles import doors
from tests.doubles.jars import jar_with_class
from tests.paths import PROJECT

pytestmark = pytest.mark.cloud

PIDS = """
import os, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize([str(os.getpid())]).coalesce(1).saveAsTextFile(sys.argv[1])
print(os.getpid(), flush=True)
time.sleep(float(sys.argv[2]))
"""


def test_each_run_has_its_own_process_and_none_survives_the_cleanup(tmp_path: Path) -> None:
    with stand_in(tmp_path / "state", ServerOptions(workers=WorkerSettings(at_once=1, spares=1))) as cloud:
        first = cloud.wait(cloud.start(PIDS, f"s3://{BUCKET}/data/first", "0", name="first"))
        assert first["state"] == "SUCCESS", first["stateDetails"]
        assert "data/first/part-00000" in cloud.keys("data/first/")
        second = cloud.start(PIDS, f"s3://{BUCKET}/data/second", "600", name="second")
        output = cloud.folder.emr / second / "stdout"
        until(lambda: output.exists() and bool(output.read_text()), SECONDS, "the second job's process id")
        pid = int(output.read_text())
        assert str(pid) != (cloud.folder.emr / first["jobRunId"] / "stdout").read_text().strip()

        emr = next(record for record in read_records(cloud.folder) if record.name == EMR)
        process = emr.process()
        assert process is not None
        process.kill()
        until(lambda: emr.process() is None, SECONDS, "the end of the stand-in")
        survivors = cloud_processes(cloud.folder)
        assert pid in {each.pid for each in survivors}
        assert any("java" in each.name() for each in survivors)

        end_all(cloud.folder)

        assert not cloud_processes(cloud.folder)
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


LAUNCHED = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
jvm = spark._jvm
loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
print(loader.loadClass("own.Hello").getName(), jvm.java.lang.System.getProperty("greeting"), flush=True)
tasks = spark.sparkContext._jsc.sc().listJars().mkString()
print(spark.conf.get("spark.sql.ansi.enabled"), "hello.jar" in tasks, flush=True)
"""


def test_a_run_finds_the_classes_of_its_jar_and_the_options_of_its_jvm(tmp_path: Path) -> None:
    options = (
        "--conf spark.driver.extraJavaOptions='-Dgreeting=good-day -XX:+UseG1GC' --conf spark.sql.ansi.enabled=false"
    )
    with stand_in(tmp_path / "state", ServerOptions(workers=WorkerSettings(at_once=1, spares=0, reuse=True))) as cloud:
        cloud.client("s3").put_object(Bucket=BUCKET, Key="code/hello.jar", Body=jar_with_class("own/Hello"))
        jar = f"--jars s3://{BUCKET}/code/hello.jar"
        first = cloud.wait(cloud.start(LAUNCHED, name="with", parameters=f"{jar} {options}"))
        second = cloud.wait(cloud.start(LAUNCHED, name="without", parameters=options))
        output = (cloud.folder.emr / first["jobRunId"] / "stdout").read_text()

    assert first["state"] == "SUCCESS", first["stateDetails"]
    assert output.splitlines() == ["own.Hello good-day", "false True"]
    # Nothing of a run's JVM is left for the next one.
    assert second["state"] == "FAILED"
    assert "loadClass" in second["stateDetails"]


PAGE = (PROJECT / "docs" / "security.md").read_text()
LOOK = """
import json, os, runpy, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.sparkContext.parallelize(["4111111111111111"], 1).cache()
rows.map(len).count()
doors = runpy.run_path("doors.py")
found = [door for door in doors["doors"](os.getpid()) if door.program == "java"]
answers = [doors["asked_for_a_block"](door.port, f"rdd_{rows.id()}_0").decode(errors="replace") for door in found]
print(json.dumps({"addresses": [door.address for door in found], "answers": answers}), flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_a_stranger_reads_no_cached_block_of_a_run_even_if_its_submit_parameters_open_them(tmp_path: Path) -> None:
    """What other users of the machine reach of a driver wants to know first who calls."""
    opened = "spark.authenticate=false spark.network.crypto.enabled=false spark.ui.enabled=true"
    with stand_in(tmp_path / "state", ServerOptions(workers=WorkerSettings(at_once=1, spares=0))) as cloud:
        files = cloud.put("code/doors.py", Path(doors.__file__).read_text())
        options = " ".join([f"--files {files}", *(f"--conf {each}" for each in opened.split())])
        output = cloud.folder.emr / cloud.start(LOOK, "600", parameters=options) / "stdout"
        until(lambda: output.exists() and output.read_text().endswith("\n"), SECONDS, "what the job has seen")
        looked = json.loads(output.read_text().splitlines()[-1])
        listening = doors.doors(*(process.pid for process in cloud_processes(cloud.folder)))

    # Nothing else of the cloud listens than what docs/security.md says, and nothing for other machines.
    assert {door.program for door in listening} == doors.declared(PAGE, "local cloud")
    assert {door.address for door in listening} == {"127.0.0.1"}
    assert set(looked["addresses"]) == {"127.0.0.1"}
    # The gateway of py4j is the third, and waits for its secret.
    assert len(looked["answers"]) == 3
    answered = [answer for answer in looked["answers"] if answer]
    assert len(answered) == 2
    assert all(doors.CHALLENGED.decode() in answer for answer in answered), answered
