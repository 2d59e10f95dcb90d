"""Faults of the EMR Serverless stand-in: throttled calls, lost and repeated events, killed drivers.

The stand-in loads this module at its start (`UpOptions.faults`). `inject` writes the plan into a file of the stand-in's folder,
which `Faults` reads before each decision. One generator draws all random numbers from the plan's seed.
"""

from __future__ import annotations

import json
import random
import threading
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from asya_local.emr import faults

if TYPE_CHECKING:
    from pathlib import Path

    from asya_local.emr.capacity import Limits
    from asya_local.emr.settings import EmrSettings

MODULE = __name__
"""For `UpOptions.faults` and `ServerOptions.faults`."""


@dataclass(frozen=True)
class FaultPlan:
    """The faults to inject. Probabilities are 0 to 1; None keeps a limit of the settings."""

    seed: int = 0
    starts_per_second: float | None = None
    start_burst: int | None = None
    max_concurrent_runs: int | None = None
    max_vcpu: int | None = None
    throttle: float = 0.0
    """Of all calls: throttled, whatever the quota."""
    no_capacity: float = 0.0
    """Of runs: failed for lack of workers when they leave the queue."""
    lose_events: float = 0.0
    repeat_events: float = 0.0
    delay_events: float = 0.0
    delay_seconds: float = 5.0
    """The longest delay of a delayed event."""
    lose_responses: float = 0.0
    """Of mutating calls: executed, then the connection closes without a response."""
    repeat_calls: float = 0.0
    """Of mutating calls: they arrive twice, and the caller gets the second response."""
    delay_responses: float = 0.0
    """Of all calls: the response is delayed."""
    response_seconds: float = 2.0
    """The longest delay of a delayed response."""
    kill_runs: float = 0.0
    """Of runs: the driver is killed within `kill_within_seconds` of its start."""
    kill_within_seconds: float = 5.0
    executor_seconds: float = 0.0
    """Of each run: no executor for so long after the start of Spark."""
    lose_executors: float = 0.0
    """Of runs: all executors are lost once, `lose_executors_after` seconds after the start of Spark."""
    lose_executors_after: float = 0.0


def inject(folder: Path, **values: float) -> None:
    """Replace the plan of the stand-in in the folder; without values, remove all faults.

    Args:
        folder: The stand-in's own folder (`StateFolder.emr`).
        values: Fields of `FaultPlan`.
    """
    plan: Any = FaultPlan
    draft = folder / "faults.draft"
    draft.write_text(json.dumps(asdict(plan(**values))))
    draft.replace(folder / "faults.json")


class Faults(faults.Faults):
    """Injects the faults of the plan; a new plan starts the generator from its seed."""

    def __init__(self, settings: EmrSettings) -> None:
        super().__init__(settings)
        self._file = settings.folder / "faults.json"
        self._lock = threading.Lock()
        self._version: tuple[int, int] | None = None
        self._plan = FaultPlan()
        self._random = random.Random(0)

    def throttles_call(self) -> bool:
        return self._occurs("throttle")

    def repeats_call(self) -> bool:
        return self._occurs("repeat_calls")

    def loses_response(self) -> bool:
        return self._occurs("lose_responses")

    def response_delay(self) -> float:
        with self._lock:
            plan = self._current()
            delayed = self._random.random() < plan.delay_responses
            return self._random.uniform(0, plan.response_seconds) if delayed else 0.0

    def start_rate(self) -> tuple[float, int]:
        per_second, burst = super().start_rate()
        with self._lock:
            plan = self._current()
        return (
            per_second if plan.starts_per_second is None else plan.starts_per_second,
            burst if plan.start_burst is None else plan.start_burst,
        )

    def limits(self, limits: Limits) -> Limits:
        with self._lock:
            plan = self._current()
        if plan.max_vcpu is not None:
            limits = replace(limits, max_vcpu=plan.max_vcpu)
        if plan.max_concurrent_runs is not None:
            limits = replace(limits, max_concurrent_runs=plan.max_concurrent_runs)
        return limits

    def exceeds_capacity(self) -> bool:
        return self._occurs("no_capacity")

    def kill_delay(self) -> float | None:
        with self._lock:
            plan = self._current()
            if self._random.random() >= plan.kill_runs:
                return None
            return self._random.uniform(0, plan.kill_within_seconds)

    def executor_delay(self) -> float:
        with self._lock:
            return self._current().executor_seconds

    def executor_loss(self) -> float | None:
        with self._lock:
            plan = self._current()
            # Without the fault nothing is drawn, so the history of a seed stays.
            is_lost = plan.lose_executors > 0 and self._random.random() < plan.lose_executors
            return plan.lose_executors_after if is_lost else None

    def event_delays(self) -> tuple[float, ...]:
        with self._lock:
            plan = self._current()
            if self._random.random() < plan.lose_events:
                return ()
            copies = 2 if self._random.random() < plan.repeat_events else 1
            return tuple(
                self._random.uniform(0, plan.delay_seconds) if self._random.random() < plan.delay_events else 0.0
                for _ in range(copies)
            )

    def _occurs(self, fault: str) -> bool:
        with self._lock:
            plan = self._current()
            return self._random.random() < float(getattr(plan, fault))

    def _current(self) -> FaultPlan:
        """Return the plan, read anew if its file has changed."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return self._plan
        version = status.st_mtime_ns, status.st_ino
        if version != self._version:
            self._version = version
            self._plan = FaultPlan(**json.loads(self._file.read_text()))
            self._random = random.Random(self._plan.seed)
        return self._plan
