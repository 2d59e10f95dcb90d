"""Tests when the memory of a process counts as flat."""

import pytest

from tests.chaos.memory import MIB, WARM_UP_SECONDS, growths, violations
from tests.chaos.processes import MemorySample


def samples(*sizes: int, part: str = "worker", age: float = WARM_UP_SECONDS) -> list[MemorySample]:
    """A sample every five seconds; sizes in MiB."""
    return [MemorySample(5.0 * n, part, "asya-chaos-price", 1, age + 5 * n, size * MIB) for n, size in enumerate(sizes)]


def test_a_flat_process_is_no_violation() -> None:
    (growth,) = growths(samples(*[10] * 8, 90, 91, 90, 91, 95, 91, 92, 91))
    assert (growth.first, growth.last) == (90.5 * MIB, 91.5 * MIB)
    assert violations([growth]) == []


def test_a_growing_process_is_a_violation() -> None:
    (violation,) = violations(growths(samples(*range(90, 190, 5))))
    assert "asya-chaos-price (process 1) grew by 30 MiB" in violation.text


def test_caches_may_fill_in_the_first_half() -> None:
    assert violations(growths(samples(*range(50, 110, 5), *[110] * 12))) == []


def test_the_warm_up_does_not_count() -> None:
    assert growths(samples(10, 20, 40, 80, 90, 90, 90, 90, age=0)) == []


@pytest.mark.parametrize("part", ["ministack", "this process"])
def test_a_process_that_keeps_the_data_of_the_run_is_not_judged(part: str) -> None:
    assert violations(growths(samples(*range(100, 1000, 50), part=part))) == []
