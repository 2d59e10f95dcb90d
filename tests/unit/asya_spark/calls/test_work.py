"""What Spark has measured of a call (`protocol §10.work`)."""

from typing import Any

import pytest

from asya_spark.calls.work import is_skewed, summed


def stage(number: int, median: float = 0.0, longest: float = 0.0, **sums: int) -> dict[str, Any]:
    known = {"tasks": 4, "shuffle_read": 0, "shuffle_written": 0, "spilled_memory": 0, "spilled_disk": 0}
    return {"stage": number, "name": f"s{number}", **known, **sums, "median_ms": median, "longest_ms": longest}


@pytest.mark.rule("10.work")
@pytest.mark.parametrize(
    ("median", "longest", "expected"),
    [(100.0, 1000.0, True), (101.0, 1000.0, False), (0.0, 1000.0, True), (0.0, 999.0, False), (500.0, 60_000.0, True)],
)
def test_10_a_stage_is_skewed_if_one_task_took_ten_times_the_median(
    median: float, longest: float, expected: bool
) -> None:
    assert is_skewed(median, longest) is expected


@pytest.mark.rule("10.work")
def test_10_the_work_of_a_call_has_sums_and_the_longest_task_of_a_skewed_stage() -> None:
    stages = [
        stage(1, shuffle_written=10),
        stage(2, 10.0, 2000.0, shuffle_read=10, spilled_memory=7, spilled_disk=3),
        stage(3, 50.0, 1500.0),
        stage(4, 5000.0, 9000.0),  # the longest task, and no skew
    ]
    assert summed(stages) == {
        "stages": 4,
        "tasks": 16,
        "shuffle_read": 10,
        "shuffle_written": 10,
        "spilled_memory": 7,
        "spilled_disk": 3,
        "skew": {"stage": 2, "name": "s2", "tasks": 4, "median_ms": 10.0, "longest_ms": 2000.0},
    }
    assert summed([]) is None
