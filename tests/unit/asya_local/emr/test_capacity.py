"""The size of a job run, and whether it fits into the capacity."""

import pytest

from asya_local.emr.capacity import Limits, Size, fits, gigabytes, size_of


@pytest.mark.parametrize(
    ("conf", "size"),
    [
        ({}, Size(16, 56, 80)),
        ({"spark.dynamicAllocation.initialExecutors": "1"}, Size(8, 28, 40)),
        ({"spark.dynamicAllocation.maxExecutors": "2"}, Size(12, 42, 60)),
        ({"spark.dynamicAllocation.enabled": "false", "spark.executor.instances": "2"}, Size(12, 42, 60)),
        (
            {
                "spark.driver.cores": "1",
                "spark.driver.memory": "2g",
                "spark.executor.cores": "1",
                "spark.executor.memory": "2048m",
                "spark.dynamicAllocation.initialExecutors": "2",
            },
            Size(3, 6, 60),
        ),
    ],
)
def test_the_size_of_a_run(conf: dict[str, str], size: Size) -> None:
    assert size_of(conf) == size


@pytest.mark.parametrize(
    ("text", "amount"), [("2g", 2), ("512m", 0.5), ("1024", 1), ("1tb", 1024), (None, 7), ("x", 7)]
)
def test_memory_sizes_of_spark_are_converted_to_gigabytes(text: str | None, amount: float) -> None:
    assert gigabytes(text, 7) == amount


def test_a_run_fits_within_all_limits_or_alone() -> None:
    limits, small = Limits(max_vcpu=16, max_memory_gb=128, max_concurrent_runs=2), Size(6, 12, 20)

    assert fits(small, [small], limits)
    assert not fits(small, [small, small], limits)  # concurrency
    assert not fits(Size(12, 12, 20), [small], limits)  # vCPU
    assert not fits(Size(6, 120, 20), [small], limits)  # memory
    assert fits(Size(64, 500, 20), [], limits)  # alone
