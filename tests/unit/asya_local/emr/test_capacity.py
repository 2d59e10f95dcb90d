"""The size of a job run, and what of it fits into the capacity."""

import pytest

from asya_local.emr.capacity import (
    Limits,
    Resources,
    Size,
    driver_fits,
    executors_that_fit,
    gigabytes,
    size_of,
)

DEFAULT = Resources(4, 14, 20)
ONE = Resources(1, 2, 20)
LIMITS = Limits(max_vcpu=16, max_memory_gb=128, max_concurrent_runs=15)


@pytest.mark.parametrize(
    ("conf", "size"),
    [
        ({}, Size(DEFAULT, DEFAULT, 3)),
        ({"spark.dynamicAllocation.initialExecutors": "1"}, Size(DEFAULT, DEFAULT, 1)),
        (
            {"spark.dynamicAllocation.initialExecutors": "1", "spark.executor.instances": "2"},
            Size(DEFAULT, DEFAULT, 2),
        ),
        ({"spark.dynamicAllocation.minExecutors": "4"}, Size(DEFAULT, DEFAULT, 4)),
        ({"spark.dynamicAllocation.enabled": "false", "spark.executor.instances": "2"}, Size(DEFAULT, DEFAULT, 2)),
        (
            {
                "spark.driver.cores": "1",
                "spark.driver.memory": "2g",
                "spark.executor.cores": "1",
                "spark.executor.memory": "2048m",
                "spark.dynamicAllocation.initialExecutors": "2",
            },
            Size(ONE, ONE, 2),
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


def test_a_driver_fits_within_all_limits_or_alone() -> None:
    limits, small = Limits(max_vcpu=16, max_memory_gb=128, max_concurrent_runs=2), Resources(6, 12, 20)

    def fits(driver: Resources, used: list[Resources]) -> bool:
        return driver_fits(Size(driver, Resources(100, 1000, 20), 3), used, limits)

    assert fits(small, [small])  # whatever its executors need
    assert not fits(small, [small, small])  # concurrency
    assert not fits(Resources(12, 12, 20), [small])  # vCPU
    assert not fits(Resources(6, 120, 20), [small])  # memory
    assert fits(Resources(64, 500, 20), [])  # alone


def test_executors_wait_until_all_of_them_fit() -> None:
    size = Size(ONE, ONE, 4)
    used = [size.driver, Resources(10, 20, 0)]
    assert executors_that_fit(size, used, LIMITS) == 4
    assert executors_that_fit(size, [*used, Resources(2, 4, 20)], LIMITS) == 0


def test_a_run_alone_starts_with_fewer_executors() -> None:
    size = Size(ONE, ONE, 40)
    assert executors_that_fit(size, [size.driver], LIMITS) == 15
    assert executors_that_fit(size, [size.driver, ONE], LIMITS) == 0
    assert executors_that_fit(Size(ONE, DEFAULT, 1), [ONE], Limits(4, 128, 15)) == 0


@pytest.mark.parametrize(
    ("max_concurrent_runs", "with_executors", "only_a_driver"),
    [
        (15, 1, 14),  # the default of EMR Serverless: 15 drivers leave one vCPU
        (3, 3, 0),  # ⌊16 / (1 + 4)⌋
    ],
)
def test_too_many_drivers_starve_their_executors(
    max_concurrent_runs: int, with_executors: int, only_a_driver: int
) -> None:
    limits, size = Limits(16, 128, max_concurrent_runs), Size(ONE, ONE, 1)
    used: list[Resources] = []
    while driver_fits(size, used, limits):
        used.append(size.driver)
    for index in range(len(used)):
        used[index] = size.with_executors(executors_that_fit(size, used, limits))

    assert used.count(size.with_executors(1)) == with_executors
    assert used.count(size.driver) == only_a_driver


def test_the_limit_leaves_room_for_all_executors() -> None:
    limits, largest = Limits(16, 128, 3), Size(ONE, ONE, 4)
    used = [largest.driver] * limits.max_concurrent_runs
    for index in range(len(used)):
        used[index] = largest.with_executors(executors_that_fit(largest, used, limits))
    assert used == [Resources(5, 10, 100)] * 3
