"""What a local driver loses with its executors, and computes again."""

import threading
import time

import pytest

from asya_local.emr.drivers.executors import lose_executors

pytestmark = pytest.mark.spark

NUMBERS = range(10)


def until(condition, thread):
    """Waits for a condition while a thread runs."""
    while not condition():
        assert thread.is_alive()
        time.sleep(0.05)


def test_lost_executors_lose_shuffle_files_and_cached_blocks(spark, tmp_path):
    context, at_work, results = spark.sparkContext, tmp_path / "at-work", []
    cached_calls, map_calls = context.accumulator(0), context.accumulator(0)

    def cached(number):
        cached_calls.add(1)
        return number

    def mapped(number):
        map_calls.add(1)
        return number % 2, number

    def reduced(pairs):
        if not at_work.exists():
            at_work.touch()
            time.sleep(600)  # until its executor is lost
        return [sum(number for _, number in pairs)]

    numbers = context.parallelize(NUMBERS, 1).map(cached).cache()
    assert numbers.sum() == sum(NUMBERS)
    sums = context.parallelize(NUMBERS, 2).map(mapped).partitionBy(1).mapPartitions(reduced)
    job = threading.Thread(target=lambda: results.append(sums.collect()), daemon=True)
    job.start()
    until(at_work.exists, job)

    lose_executors(context)

    job.join()
    assert results == [[sum(NUMBERS)]]
    assert map_calls.value == 2 * len(NUMBERS)
    assert numbers.sum() == sum(NUMBERS)
    assert cached_calls.value == 2 * len(NUMBERS)
    numbers.unpersist()
