"""What a run costs, and how its envelopes share it."""

import pytest

from asya.capabilities.operations.prices import part_of, prices_of, shares
from asya.protocol.job_runs import Usage


def test_storage_counts_beyond_the_free_part() -> None:
    prices = prices_of("ARM64")
    assert prices.cost(Usage(vcpu_hours=1)) == 0.042094
    assert prices.cost(Usage(storage_gb_hours=1000)) == pytest.approx(0.111)


@pytest.mark.parametrize(
    ("architecture", "own", "source"),
    [
        ("ARM64", {}, "(list price of ARM64 in us-east-1)"),
        (None, {}, "(list price of ARM64 in us-east-1, the architecture is assumed)"),
        ("X86_64", {"vcpu": 0.1}, "$0.1 per vCPU-hour, $0.0057785 per GB-hour (your price, else the list price"),
        ("X86_64", {"vcpu": 0.1, "memory": 0.0}, "$0.1 per vCPU-hour, $0 per GB-hour (your prices)"),
    ],
)
def test_the_source_names_the_prices(architecture: str | None, own: dict[str, float], source: str) -> None:
    assert source in prices_of(architecture, **own).source


@pytest.mark.parametrize(
    ("durations", "shape", "expected"),
    [
        ([30.0, 10.0], "payload", ([0.75, 0.25], "by duration")),
        ([30.0, 0.0], "payload", ([0.5, 0.5], "equally")),
        ([30.0, 10.0], "dataframe", ([0.5, 0.5], "equally")),
    ],
)
def test_shares(durations: list[float], shape: str, expected: tuple[list[float], str]) -> None:
    assert shares(durations, shape) == expected


def test_a_part_of_a_usage() -> None:
    assert part_of(Usage(vcpu_hours=2, memory_gb_hours=4, billed=True), 0.25) == Usage(
        vcpu_hours=0.5, memory_gb_hours=1, billed=True
    )
