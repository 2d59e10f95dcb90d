"""Limits and faults of EMR Serverless, beside the faults of any call."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class JobFaults:
    """The behavior of EMR Serverless; rates are per event or run, and last as long as the faults of the `FaultProfile`.

    Attributes:
        starts_per_second, burst: above this StartJobRun is throttled.
        capacity: runs at the same time; None for any number.
        when_full: whether a run beyond that is refused or queued.
        longest_start: seconds until a driver runs, at most.
        lost_events, repeated_events, late_events: rates of events that never come, come twice, or come minutes later.
        early_events: rate of events, and of driver starts, before the response to StartJobRun arrives.
        killed_drivers: rate of runs whose driver is killed, such as by a lack of memory.
        canceled_runs: rate of runs that an operator cancels.
        orphaned_drivers: rate of runs that EMR Serverless ends as failed while their driver continues.
        second_drivers: rate of runs that get a second driver.
        forgets_tokens_after: seconds that a client token is remembered.
    """

    starts_per_second: float = 1000.0
    burst: int = 1000
    capacity: int | None = None
    when_full: Literal["refused", "queued"] = "refused"
    longest_start: float = 20.0
    lost_events: float = 0.0
    repeated_events: float = 0.0
    late_events: float = 0.0
    early_events: float = 0.0
    killed_drivers: float = 0.0
    canceled_runs: float = 0.0
    orphaned_drivers: float = 0.0
    second_drivers: float = 0.0
    forgets_tokens_after: float = 5400.0

    @property
    def is_fault_free(self) -> bool:
        """Whether every event arrives once and soon, and every driver ends by itself."""
        rates = (self.lost_events, self.repeated_events, self.late_events, self.killed_drivers, self.canceled_runs)
        return not any((*rates, self.orphaned_drivers, self.second_drivers))
