"""How many job runs fit into the Spark application, and how many executors one of them may have."""

from typing import Any

import pytest

from asya_infra.mesh_file.actor_model import ApplicationSection, SparkSection, conf_megabytes
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import read_section
from asya_infra.mesh_file.spark import (
    Capacity,
    WarmSize,
    WarmWorker,
    application_capacity,
    max_concurrent_runs,
    max_executors,
    run_size,
    sized_sections,
    warm_size,
)


def job(**keys: Any) -> SparkSection:
    return read_section(SparkSection, {"job": "heavy.crunch", **keys})


def mesh(*jobs: dict[str, Any], **application: Any) -> MeshFile:
    actors = {f"a{index}": {"spark": {"job": "heavy.crunch", **keys}} for index, keys in enumerate(jobs)}
    return read_section(
        MeshFile,
        {"namespace": "shop", "actors": actors, "sink": {"index": False}, "spark": {"application": application}},
    )


@pytest.mark.parametrize(
    ("keys", "driver", "executor"),
    [
        ({}, Capacity(1, 3), Capacity(1, 3)),  # 2048 + 384 MB
        ({"driver": {"memory": "1g"}}, Capacity(1, 2), Capacity(1, 3)),
        ({"executors": {"cores": 4, "memory": "2g"}}, Capacity(1, 3), Capacity(4, 8)),
        ({"executors": {"cores": 8, "memory": "16g"}}, Capacity(1, 3), Capacity(8, 20)),
        ({"executors": {"cores": 16, "memory": "100g"}}, Capacity(1, 3), Capacity(16, 112)),
        ({"conf": {"spark.driver.memoryOverhead": "6g"}}, Capacity(1, 8), Capacity(1, 3)),
        ({"conf": {"spark.executor.memoryOverheadFactor": "0.5"}}, Capacity(1, 3), Capacity(1, 3)),
        ({"conf": {"spark.executor.pyspark.memory": "1g"}}, Capacity(1, 3), Capacity(1, 4)),
    ],
)
def test_the_size_of_workers(keys: dict[str, Any], driver: Capacity, executor: Capacity) -> None:
    size = run_size(job(**keys))
    assert (size.driver, size.executor) == (driver, executor)


@pytest.mark.parametrize(
    ("jobs", "driver", "executor"),
    [
        ([], WarmWorker(1, 3), WarmWorker(1, 3)),
        ([{"driver": {"memory": "1g"}}], WarmWorker(1, 2), WarmWorker(1, 3)),
        ([{"driver": {"cores": 4, "memory": "2g"}}, {"driver": {"memory": "7g"}}], WarmWorker(4, 8), WarmWorker(1, 3)),
        # 30 GB of the one and 8 cores of the other: workers with 8 cores have memory in steps of 4 GB.
        (
            [{"executors": {"cores": 4, "memory": "27g", "disk": "30g"}}, {"executors": {"cores": 8, "memory": "2g"}}],
            WarmWorker(1, 3),
            WarmWorker(8, 32, 30),
        ),
    ],
)
def test_warm_workers_fit_every_job(jobs: list[dict[str, Any]], driver: WarmWorker, executor: WarmWorker) -> None:
    values = mesh(*jobs) if jobs else read_section(MeshFile, {"namespace": "a", "actors": {"a": {"handler": "b.c"}}})
    size = warm_size(values)
    assert (size.driver, size.executor) == (driver, executor)


@pytest.mark.parametrize(
    ("jobs", "application", "runs"),
    [
        ([{}], {}, 3),  # 16 vCPU / (1 + 4)
        ([{"executors": {"max": 2}}], {}, 5),
        ([{"executors": {"max": 2}}, {"executors": {"max": 7}}], {}, 2),  # the largest job
        ([{"executors": {"max": 100}}], {}, 1),  # clamped to 15 executors
        ([{"executors": {"max": 4, "memory": "7g"}}], {"max_memory": "32g"}, 1),  # 3 + 3 × 8 GB
        ([{}], {"max_vcpu": 400}, 80),
        ([{"executors": {"max": 1}}], {"max_vcpu": 4000}, 1000),
        ([{"executors": {"min": 1, "max": 15}}], {"oversubscribe": True}, 8),
        ([{"executors": {"min": 3, "max": 15}}], {"oversubscribe": True}, 4),
        ([{}], {"oversubscribe": True}, 8),  # one executor at least
        ([{}], {"max_concurrent_runs": 9}, 9),
        ([{"executors": {"min": 20, "max": 20}}], {}, 0),
        ([], {}, 1000),
        ([{}], {"id": "00abc"}, 3),
        ([{"executors": {"max": 100}}], {"id": "00abc"}, 1),
        ([{}], {"id": "00abc", "max_vcpu": 50}, 10),
    ],
)
def test_the_runs_that_are_active_at_once(jobs: list[dict[str, Any]], application: dict[str, Any], runs: int) -> None:
    if not jobs:
        light = {"namespace": "shop", "actors": {"a": {"handler": "shop.one"}}}
        assert max_concurrent_runs(read_section(MeshFile, light)) == runs
    else:
        assert max_concurrent_runs(mesh(*jobs, **application)) == runs


def test_the_index_is_a_job_too() -> None:
    values = {"namespace": "shop", "actors": {"a": {"spark": {"job": "heavy.crunch", "executors": {"max": 1}}}}}
    assert max_concurrent_runs(read_section(MeshFile, {**values, "sink": {"index": False}})) == 8
    assert max_concurrent_runs(read_section(MeshFile, values)) == 5


@pytest.mark.parametrize(
    ("executors", "application", "most"),
    [
        ({"max": 4}, {}, 4),
        ({"max": 100}, {}, 15),
        ({"max": 100, "cores": 4, "memory": "20g"}, {}, 3),
        ({"max": 100, "memory": "7g"}, {"max_memory": "64g"}, 7),
        ({"max": 100}, {"id": "00abc"}, 100),
        ({"max": 100}, {"id": "00abc", "max_vcpu": 40}, 39),
    ],
)
def test_executors_are_clamped_to_what_fits(executors: dict[str, Any], application: dict[str, Any], most: int) -> None:
    assert max_executors(job(executors=executors), read_section(ApplicationSection, application)) == most


@pytest.mark.rule("10.size")
def test_all_sizes_of_a_job_count() -> None:
    keys = {
        "driver": {"memory": "4g"},
        "sizes": {
            "small": {},
            "large": {"driver": {"cores": 4}, "executors": {"memory": "7g", "max": 8}, "conf": {"a": "1"}},
        },
        "conf": {"a": "0", "b": "2"},
    }
    (_, small), (_, large) = sized_sections(job(**keys))
    assert (small.driver.memory, small.executors.max, small.conf) == (4096, 4, {"a": "0", "b": "2"})
    assert (large.driver.memory, large.driver.cores, large.executors.max, large.conf) == (
        4096,
        4,
        8,
        {"a": "1", "b": "2"},
    )
    assert max_concurrent_runs(mesh(keys)) == 1, "one run of the large size with its eight executors"
    assert warm_size(mesh(keys)) == WarmSize(WarmWorker(4, 8), WarmWorker(1, 8))


def test_the_capacity_of_the_application() -> None:
    assert application_capacity(ApplicationSection()) == Capacity(16, 128)
    assert application_capacity(read_section(ApplicationSection, {"max_memory": "1500m"})) == Capacity(16, 1)


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("2g", 2048),
        ("512m", 512),
        ("512", 512),
        ("1025k", 2),
        ("0.5g", 512),
        ("1tb", 1048576),
        (None, None),
        ("x", None),
    ],
)
def test_memory_sizes_of_spark(text: str | None, megabytes: int | None) -> None:
    assert conf_megabytes(text) == megabytes
