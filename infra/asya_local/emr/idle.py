"""Decides which runs are idle: a job that waits for its next work needs no slot of this machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW = 3.0
"""Seconds without work after which a run is idle."""
CORES = 0.25
"""An idle run uses less of a core on average. A job that polls S3 four times a second uses less than half of that."""


@dataclass(frozen=True)
class CpuSample:
    """The CPU time that the processes of a driver have used.

    Attributes:
        at: The time of the sample, in seconds.
        used: Seconds of CPU time since their start.
    """

    at: float
    used: float


class IdleRuns:
    """The runs that are idle, by samples of their CPU time."""

    def __init__(self) -> None:
        self._samples: dict[str, tuple[CpuSample, ...]] = {}

    def observe(self, at: float, used: Mapping[str, float]) -> None:
        """Take a sample of each run whose job runs now; forget all others."""
        self._samples = {
            run_id: recent((*self._samples.get(run_id, ()), CpuSample(at, seconds))) for run_id, seconds in used.items()
        }

    def is_idle(self, run_id: str) -> bool:
        """Return whether a run is idle."""
        return is_idle(self._samples.get(run_id, ()))


def recent(samples: tuple[CpuSample, ...]) -> tuple[CpuSample, ...]:
    """Return the latest samples, without those that the window does not need."""
    since = samples[-1].at - WINDOW
    start = max((index for index, sample in enumerate(samples) if sample.at <= since), default=0)
    return samples[start:]


def is_idle(samples: tuple[CpuSample, ...]) -> bool:
    """Return whether recent samples are of an idle run: on average of the window, and since the latest sample but one."""
    if not samples or samples[-1].at - samples[0].at < WINDOW:
        return False
    latest = samples[-1]
    return all(latest.used - sample.used < CORES * (latest.at - sample.at) for sample in (samples[0], samples[-2]))
