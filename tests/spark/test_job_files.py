"""The files beside a job, from the archive that Spark itself unpacks for the driver and for executors of their own process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asya.heavy.job_python import CODE_FOLDER
from asya_infra.build.jobs import build_jobs
from asya_infra.build.packages import Target
from asya_local.emr.drivers.job_environment import job_python, spark_home
from asya_local.tools import find_java

JOB = """
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent


def read(_=None):
    from common import rates

    files = sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {
        "files": files,
        "texts": [(HERE / "größe der tabelle.csv").read_text(), rates.read()],
        "runs": os.access(HERE / "bin" / "tool", os.X_OK),
    }
"""
RATES = """
from pathlib import Path


def read():
    return (Path(__file__).parent / "rates.json").read_text()
"""
# As EMR Serverless starts them: the archive is unpacked beside the driver, and beside each executor.
DRIVER = """
import json, os, sys
from pyspark import SparkFiles
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local-cluster[1,1,1024]").getOrCreate()
os.chdir(SparkFiles.getRootDirectory())
sys.path.insert(0, os.path.abspath(sys.argv[1]))
import job

executor = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("job").read()).collect()
print(json.dumps([job.read(), *executor]))
spark.stop()
"""


@pytest.mark.rule("10.code")
@pytest.mark.slow
def test_10_files_beside_a_job_open_on_the_driver_and_the_executors(tmp_path: Path) -> None:
    shared, jobs = tmp_path / "shared" / "common", tmp_path / "jobs"
    for folder in (shared, jobs / "bin"):
        folder.mkdir(parents=True)
    (shared / "rates.py").write_text(RATES)
    (shared / "rates.json").write_text("[1.1]")
    (jobs / "common").symlink_to(shared)
    (jobs / "job.py").write_text(JOB)
    (jobs / "größe der tabelle.csv").write_text("1;2")
    (jobs / "bin" / "tool").write_text("#!/bin/sh\n")
    (jobs / "bin" / "tool").chmod(0o755)
    (jobs / ".env").write_text("KEY=secret")
    files = build_jobs(tmp_path / "build", Target(interpreter=Path(sys.executable)), jobs)
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    python = job_python(tmp_path / "build")
    conf = {
        "spark.archives": f"{files.jobs.archive}#{CODE_FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{CODE_FOLDER}",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(tmp_path),
    }
    arguments = " ".join(f"--conf '{name}={value}'" for name, value in conf.items())
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "JAVA_HOME": find_java(),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell",
        # No name is lost where the image has no locale.
        "LANG": "C",
    }
    command = [str(python), "-P", str(driver), CODE_FOLDER]
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    seen_by_driver, seen_by_executor = json.loads(ended.stdout)
    assert seen_by_driver == {
        "files": ["bin/tool", "common/rates.json", "common/rates.py", "größe der tabelle.csv", "job.py"],
        "texts": ["1;2", "[1.1]"],
        "runs": True,
    }
    assert seen_by_executor == seen_by_driver
