"""Tests the schedule of faults: the seed determines it, and it stays within the load."""

import itertools

import pytest

from tests.chaos.schedule import SERVICES, Fault, Size, draw_faults

SIZES = [Size.of(50), Size.of(200), Size.of(2000), Size.of(200, outage_seconds=180), Size.of(200, off_seconds=120)]


def test_a_seed_determines_the_schedule() -> None:
    size = Size.of(2000)
    assert draw_faults(7, size) == draw_faults(7, size)
    assert draw_faults(7, size) != draw_faults(8, size)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", SIZES)
def test_each_kind_of_fault_takes_place_within_the_load(seed: int, size: Size) -> None:
    faults = draw_faults(seed, size)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(fault.at >= 0 and fault.end <= size.load_seconds for fault in faults)
    assert {fault.kind for fault in faults} == {"gateway", "service", "worker", "driver"}
    assert {fault.service for fault in faults if fault.kind == "service"} == set(SERVICES)
    assert [fault.seconds for fault in faults if fault.kind == "gateway"] == [size.outage_seconds]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [Size.of(2000), Size.of(200, off_seconds=120)])
def test_services_fail_one_after_the_other(seed: int, size: Size) -> None:
    outages = [fault for fault in draw_faults(seed, size) if fault.kind == "service"]
    assert all(before.end <= after.at for before, after in itertools.pairwise(outages))


def test_a_service_that_is_off_refuses_every_call() -> None:
    outages = [fault for fault in draw_faults(7, Size.of(200, off_seconds=120)) if fault.kind == "service"]
    assert [(fault.seconds, fault.rate) for fault in outages] == [(120, 1.0)] * 3


def test_the_gateway_stops_for_three_minutes_in_full_size() -> None:
    assert Size.of(2000).outage_seconds == 180
    assert Size.of(200).outage_seconds < 60
    assert Size.of(2000).load_seconds + Size.of(2000).drain_seconds <= 60 * 60


def test_faults_have_words() -> None:
    faults = [Fault(1, "gateway", 180), Fault(1, "service", 12, "s3", 0.6), Fault(1, "worker"), Fault(1, "driver")]
    assert [str(fault) for fault in faults] == [
        "the gateway is stopped for 180 s",
        "s3 fails for 12 s (60% of its calls)",
        "a Lambda worker is killed",
        "a Spark driver is killed",
    ]
