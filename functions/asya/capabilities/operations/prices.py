"""What job runs cost: the list prices of EMR Serverless, and the shares of the envelopes of a run. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from asya.protocol.job_runs import Usage

Architecture = Literal["ARM64", "X86_64"]
Sharing = Literal["by duration", "equally"]

# us-east-1, on demand, dollars per vCPU-hour and GB-hour (aws.amazon.com/emr/pricing).
_LIST_PRICES: dict[str, tuple[float, float]] = {"ARM64": (0.042094, 0.004628), "X86_64": (0.052624, 0.0057785)}
_STORAGE_PRICE = 0.000111
_LIST_REGION = "us-east-1"


@dataclass(frozen=True)
class Prices:
    """Dollars per hour of one vCPU, one GB of memory and one GB of storage beyond the free 20 GB of a worker.

    Attributes:
        source: Where the prices come from, for people.
    """

    vcpu: float
    memory: float
    storage: float
    source: str

    def cost(self, usage: Usage) -> float:
        """Return the dollars of a usage."""
        return (
            usage.vcpu_hours * self.vcpu + usage.memory_gb_hours * self.memory + usage.storage_gb_hours * self.storage
        )


def prices_of(architecture: str | None, *, vcpu: float | None = None, memory: float | None = None) -> Prices:
    """Return the prices to use.

    Args:
        architecture: The architecture of the application; None if unknown.
        vcpu: The user's price of a vCPU-hour instead of the list price.
        memory: The user's price of a GB-hour instead of the list price.
    """
    known = architecture if architecture in _LIST_PRICES else "ARM64"
    list_vcpu, list_memory = _LIST_PRICES[known]
    vcpu_price, memory_price = list_vcpu if vcpu is None else vcpu, list_memory if memory is None else memory
    assumed = "" if known == architecture else ", the architecture is assumed"
    origin = f"list price of {known} in {_LIST_REGION}{assumed}"
    if vcpu is not None and memory is not None:
        origin = "your prices"
    elif vcpu is not None or memory is not None:
        origin = f"your price, else the {origin}"
    source = f"${vcpu_price:g} per vCPU-hour, ${memory_price:g} per GB-hour ({origin})"
    return Prices(vcpu_price, memory_price, _STORAGE_PRICE, source)


def shares(durations: Sequence[float], shape: str) -> tuple[list[float], Sharing]:
    """Return the share of each envelope in its run, and how the run was divided.

    The calls of a payload job are divided by their duration, if each envelope has one. A DataFrame job is one call for all
    envelopes, so nothing says what one of them took.

    Args:
        durations: The milliseconds of each envelope; 0 if unknown.
        shape: The shape of the job.
    """
    total = sum(durations)
    if shape == "payload" and durations and all(each > 0 for each in durations):
        return [each / total for each in durations], "by duration"
    return [1 / len(durations)] * len(durations), "equally"


def part_of(usage: Usage, share: float) -> Usage:
    """Return a share of a usage."""
    return Usage(
        vcpu_hours=usage.vcpu_hours * share,
        memory_gb_hours=usage.memory_gb_hours * share,
        storage_gb_hours=usage.storage_gb_hours * share,
        billed=usage.billed,
    )
