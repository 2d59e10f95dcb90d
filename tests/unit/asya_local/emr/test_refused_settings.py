"""The stand-in refuses the settings of a run that EMR Serverless refuses, and a mesh file with them is refused before."""

from itertools import product
from pathlib import Path

import pytest

from asya.heavy.run_request import run_conf
from asya.protocol.mesh_table import SparkJob, WorkerSize
from asya_infra.limits.aws_limits import WORKERS
from asya_local.emr.refused_settings import refusal
from tests.unit.asya_infra.mesh_file.loading import heavy_actor_problems, write_code

INITIAL = "spark.dynamicAllocation.initialExecutors"
LARGE = "spark: {application: {max_vcpu: 4000, max_memory: 32000g}}"


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        (
            {"spark.dynamicAllocation.maxExecutors": "2", "spark.dynamicAllocation.minExecutors": "1"},
            "Maximum value of spark.dynamicAllocation.initialExecutors: 3 must be between spark.dynamicAllocation.minExecutor 1 "
            "and spark.dynamicAllocation.maxExecutors 2.",
        ),
        (
            {INITIAL: "5", "spark.dynamicAllocation.maxExecutors": "4"},
            "Maximum value of spark.dynamicAllocation.initialExecutors: 5 must be between spark.dynamicAllocation.minExecutor 0 "
            "and spark.dynamicAllocation.maxExecutors 4.",
        ),
        ({INITIAL: "few"}, "spark.dynamicAllocation.initialExecutors should be a whole number; got 'few'"),
        ({"spark.master": "yarn"}, "spark.master is set by EMR Serverless; remove it from the settings of the run"),
        (
            {"spark.submit.deployMode": "client"},
            "spark.submit.deployMode is set by EMR Serverless; remove it from the settings of the run",
        ),
        ({"spark.driver.cores": "3"}, "spark.driver.cores should be one of 1, 2, 4, 8, 16; got 3"),
        (
            {"spark.executor.memory": "much"},
            "spark.executor.memory should be an amount of memory, such as 4g; got 'much'",
        ),
        (
            {"spark.executor.cores": "8", "spark.executor.memory": "60g"},
            "spark.executor.memory is 61440 MB, and 6144 MB overhead are added, but a worker with 8 cores has at most 61440 MB",
        ),
        (
            {"spark.driver.memory": "27g", "spark.emr-serverless.memoryOverheadFactor": "0.2"},
            "spark.driver.memory is 27648 MB, and 5529 MB overhead are added, but a worker with 4 cores has at most 30720 MB",
        ),
    ],
)
def test_refused_settings(conf: dict[str, str], words: str) -> None:
    assert refusal(conf) == words


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark.driver.memory": "27g"},
        {"spark.dynamicAllocation.minExecutors": "9"},
        {"spark.dynamicAllocation.enabled": "false", "spark.dynamicAllocation.maxExecutors": "1"},
    ],
)
def test_settings_that_it_takes(conf: dict[str, str]) -> None:
    assert refusal(conf) is None


def test_a_mesh_file_is_refused_if_and_only_if_its_runs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_code(tmp_path)
    monkeypatch.chdir(tmp_path)
    workers = [
        (cores, memory)
        for cores, shape in WORKERS.items()
        for memory in (1024, shape.max_gb * 930, shape.max_gb * 940, shape.max_gb * 1024)
    ]
    executors = product([(0, 1), (2, 3), (3, 2)], [None, "0", "2", "3", "4"])
    samples = [*product(workers, [((0, 1), None)]), *product([(1, 2048)], executors)]
    for (cores, memory), ((least, most), initial) in samples:
        conf = {} if initial is None else {INITIAL: initial}
        written = "{" + ", ".join(f"{name}: {value}" for name, value in conf.items()) + "}"
        size = f"cores: {cores}, memory: {memory}m"
        spark = f"driver: {{{size}}}, executors: {{{size}, min: {least}, max: {most}}}, conf: {written}"
        worker = WorkerSize(cores=cores, memory_mb=memory)
        job = SparkJob(
            job="heavy.crunch", driver=worker, executor=worker, min_executors=least, max_executors=most, conf=conf
        )
        problems, problem = heavy_actor_problems("", spark, LARGE), refusal(run_conf(job, {}, None))
        assert bool(problems) == (problem is not None), (spark, problems, problem)
