"""Random faults of job runs, beside the faults of any call."""

from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.simulation.faults import Weather


@dataclass(frozen=True)
class JobWeather:
    """The behavior of EMR Serverless; rates are per event or run, and last as long as the faults of `Weather`.

    Attributes:
        starts_per_second, burst: above this StartJobRun is throttled.
        capacity: runs at the same time; None for any number.
        when_full: whether a run beyond that is refused or queued.
        longest_start: seconds until a driver runs, at most.
        lost, repeated, late: rates of events that never come, come twice, or come minutes later.
        early: rate of events, and of driver starts, before the response to StartJobRun arrives.
        killed: rate of runs whose driver is killed, such as by a lack of memory.
        canceled: rate of runs that an operator cancels.
        left_behind: rate of runs that EMR Serverless ends as failed while their driver continues.
        doubled: rate of runs that get a second driver.
        forgets_tokens_after: seconds that a client token is remembered.
    """

    starts_per_second: float = 1000.0
    burst: int = 1000
    capacity: int | None = None
    when_full: Literal["refused", "queued"] = "refused"
    longest_start: float = 20.0
    lost: float = 0.0
    repeated: float = 0.0
    late: float = 0.0
    early: float = 0.0
    killed: float = 0.0
    canceled: float = 0.0
    left_behind: float = 0.0
    doubled: float = 0.0
    forgets_tokens_after: float = 5400.0

    @property
    def is_calm(self) -> bool:
        """Whether every event arrives once and soon, and every driver ends by itself."""
        rates = (self.lost, self.repeated, self.late, self.killed, self.canceled, self.left_behind)
        return not any((*rates, self.doubled))


def random_job_weather(random: Random, weather: Weather) -> JobWeather:
    """A random job weather: limits always, faults only if `weather` has faults."""
    limits = JobWeather(
        starts_per_second=random.choice((0.2, 1.0, 1000.0)),
        burst=random.choice((1, 3, 1000)),
        capacity=random.choice((None, None, 1, 2)),
        when_full=random.choice(("refused", "queued")),
        longest_start=random.choice((1.0, 20.0, 90.0)),
    )
    if weather.is_calm:
        return limits
    bad = random.choice((0.0, 0.1, 0.3))
    return JobWeather(
        starts_per_second=limits.starts_per_second,
        burst=limits.burst,
        capacity=limits.capacity,
        when_full=limits.when_full,
        longest_start=limits.longest_start,
        lost=bad,
        repeated=bad,
        late=bad,
        early=bad,
        killed=bad / 2,
        canceled=bad / 3,
        left_behind=bad / 3,
        doubled=bad / 3,
        forgets_tokens_after=random.choice((5400.0, 86400.0)),
    )
