"""The faults of a chaos run, drawn from its seed: what happens, to which part, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

FaultKind = Literal["gateway", "service", "worker", "driver"]
SERVICES = ("s3", "dynamodb", "sqs")

WORKER_KILL_SECONDS = 5.0
"""The mean time between two killed Lambda workers."""
DRIVER_KILL_SECONDS = 40.0
"""The mean time between two killed Spark drivers."""
SLOT_SECONDS = 45.0
"""Each slot of the load has one fault of one service, so that no message meets two of them in a row."""
BETWEEN_SECONDS = 30.0
"""The time of the load for each service in addition to the time that it is off."""
FULL_SIZE = 1000
"""From this number of envelopes on the gateway stops for three minutes."""


@dataclass(frozen=True)
class Size:
    """The size of a run. Times are in seconds."""

    envelopes: int
    outage_seconds: float
    """How long the gateway is stopped."""
    off_seconds: float = 0.0
    """How long each service is off, one after the other; 0 for the short faults of the slots alone."""

    @classmethod
    def of(cls, envelopes: int, outage_seconds: float | None = None, off_seconds: float = 0.0) -> Size:
        """The size for a number of envelopes."""
        default = 180.0 if envelopes >= FULL_SIZE else 30.0
        return cls(envelopes, default if outage_seconds is None else outage_seconds, off_seconds)

    @property
    def load_seconds(self) -> float:
        """How long envelopes are started and faults are injected."""
        off = len(SERVICES) * (self.off_seconds + BETWEEN_SECONDS) if self.off_seconds else 0.0
        return max(60.0 + self.outage_seconds, 0.24 * self.envelopes, off)

    @property
    def drain_seconds(self) -> float:
        """How long the envelopes may take to end after the last fault.

        That is several visibility timeouts, and the time in which two slow cores end one envelope a second. A message that was
        kept in an outage is hidden for about as long again, at most a quarter of an hour.
        """
        return 420.0 + self.envelopes + min(900.0, 2 * self.off_seconds)


@dataclass(frozen=True)
class Fault:
    """A fault of the schedule. Times are in seconds after the beginning of the load."""

    at: float
    kind: FaultKind
    seconds: float = 0.0
    """How long it lasts; 0 for a kill."""
    service: str = ""
    rate: float = 0.0
    """The share of the calls of the service that fail."""
    pick: float = 0.0
    """Selects the victim of a kill: 0 to 1, a place in the list of the processes that live then."""

    @property
    def end(self) -> float:
        return self.at + self.seconds

    def __str__(self) -> str:
        match self.kind:
            case "gateway":
                return f"the gateway is stopped for {self.seconds:.0f} s"
            case "service":
                return f"{self.service} fails for {self.seconds:.0f} s ({self.rate:.0%} of its calls)"
            case "worker":
                return "a Lambda worker is killed"
            case "driver":
                return "a Spark driver is killed"


def draw_faults(seed: int, size: Size) -> list[Fault]:
    """Draw the faults of a run, in the order of their times. All have ended at the end of the load."""
    numbers = random.Random(f"faults {seed}")
    load = size.load_seconds
    faults = [Fault(numbers.uniform(0.15, 0.25) * (load - size.outage_seconds), "gateway", size.outage_seconds)]
    faults += _services_off(numbers, size) if size.off_seconds else _service_faults(numbers, load)
    faults += [Fault(at, "worker", pick=numbers.random()) for at in _times(numbers, load, WORKER_KILL_SECONDS)]
    faults += [Fault(at, "driver", pick=numbers.random()) for at in _times(numbers, load, DRIVER_KILL_SECONDS)]
    return sorted(faults, key=lambda each: each.at)


def _service_faults(numbers: random.Random, load: float) -> list[Fault]:
    """Give each slot of the load one fault; each service has its turn before one has its next."""
    faults: list[Fault] = []
    services: list[str] = []
    slots = max(len(SERVICES), int(load // SLOT_SECONDS))
    length = load / slots
    for slot in range(slots):
        services = services or numbers.sample(SERVICES, len(SERVICES))
        seconds = min(numbers.uniform(10, 18), length / 2)
        at = slot * length + numbers.uniform(0, length - seconds)
        faults.append(Fault(at, "service", seconds, services.pop(), numbers.choice([0.6, 0.8, 1.0])))
    return faults


def _services_off(numbers: random.Random, size: Size) -> list[Fault]:
    """Let each service refuse all calls once, one after the other."""
    part = size.load_seconds / len(SERVICES)
    starts = [number * part + numbers.uniform(0, part - size.off_seconds) for number in range(len(SERVICES))]
    services = numbers.sample(SERVICES, len(SERVICES))
    return [Fault(at, "service", size.off_seconds, service, 1.0) for at, service in zip(starts, services, strict=True)]


def _times(numbers: random.Random, load: float, mean: float) -> list[float]:
    """Times with exponential distances; none in the first seconds, in which the first processes start."""
    times = []
    at = 5.0 + numbers.expovariate(1 / mean)
    while at < load:
        times.append(at)
        at += numbers.expovariate(1 / mean)
    return times or [load / 2]
