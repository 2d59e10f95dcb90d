"""Carries out the schedule of faults on a local cloud."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import psutil
from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol import names
from tests.chaos.call_faults import CallPlan
from tests.chaos.processes import workers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.chaos.event_log import EventLog
    from tests.chaos.schedule import Fault
    from tests.cloud.heavy_cloud import HeavyCloud

_THREADS = 8
"""More than the faults that last at the same time."""

BACKGROUND = CallPlan(
    error=0.01, lost_call=0.005, lost_answer=0.005, delay=0.01, delay_seconds=1.5, duplicate=0.04, late=0.5
)
"""The faults of all calls during the load, in addition to the schedule."""
EMR_FAULTS = {
    "throttle": 0.05,
    "lose_events": 0.05,
    "repeat_events": 0.1,
    "delay_events": 0.1,
    "lose_responses": 0.05,
    "repeat_calls": 0.05,
    "no_capacity": 0.05,
}
"""The faults of EMR Serverless during the load."""


@dataclass
class Injector:
    """Injects faults; everything works again after `stop`."""

    cloud: HeavyCloud
    plan_file: Path
    seed: int
    log: EventLog
    _failing: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, faults: Sequence[Fault], until: float) -> None:
        """Inject all faults at their times, and the background until `until`, in seconds after the beginning."""
        self.cloud.inject_faults(seed=self.seed, **EMR_FAULTS)
        self._write_plan()
        with ThreadPoolExecutor(_THREADS) as pool:
            injected = []
            for fault in faults:
                if self._stopped.wait(max(0.0, fault.at - self.log.now)):
                    break
                injected.append(pool.submit(self._hold if fault.seconds else self._kill, fault))
            self._stopped.wait(max(0.0, until - self.log.now))
        for each in injected:
            each.result()
        self.cloud.inject_faults()
        CallPlan(seed=self.seed).write(self.plan_file)

    def stop(self) -> None:
        """End the faults early."""
        self._stopped.set()

    def _hold(self, fault: Fault) -> None:
        at = self.log.now
        if fault.kind == "gateway":
            limits = {name: self._limit(name) for name in self._gateway_functions()}
            for name in limits:
                self._set_limit(name, 0)
            self._stopped.wait(fault.seconds)
            for name, limit in limits.items():
                self._set_limit(name, limit)
        else:
            self._set_failing(fault.service, fault.rate)
            self._stopped.wait(fault.seconds)
            self._set_failing(fault.service, 0.0)
        self.log.add(fault.service or fault.kind, str(fault), at=at)

    def _set_failing(self, service: str, rate: float) -> None:
        with self._lock:
            self._failing[service] = rate
            self._write_plan()

    def _write_plan(self) -> None:
        failing = {service: rate for service, rate in self._failing.items() if rate}
        replace(BACKGROUND, seed=self.seed, failing=failing).write(self.plan_file)

    def _limit(self, name: str) -> int | None:
        """The reserved concurrency of a function of the mesh."""
        answer = self._lambda.get_function_concurrency(FunctionName=name)
        limit: int | None = answer.get("ReservedConcurrentExecutions")
        return limit

    def _set_limit(self, name: str, limit: int | None) -> None:
        """Set the reserved concurrency; 0 stops a function, as AWS documents it."""
        if limit is None:
            self._lambda.delete_function_concurrency(FunctionName=name)
        else:
            self._lambda.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=limit)

    @property
    def _lambda(self) -> Any:
        return self.cloud.client("lambda")

    def _gateway_functions(self) -> list[str]:
        """The functions that answer calls and those that write reports to the tasks table."""
        prefixes = tuple(names.function_name(self.cloud.namespace, part) for part in ("x-gateway-", names.REPORTS))
        pages = self._lambda.get_paginator("list_functions").paginate()
        functions = [each["FunctionName"] for page in pages for each in page["Functions"]]
        gateway = [name for name in functions if name.startswith(prefixes)]
        assert gateway, "the mesh has a gateway"
        return gateway

    def _kill(self, fault: Fault) -> None:
        if fault.kind == "worker":
            running = workers(self.cloud.folder)
            if running:
                victim = running[int(fault.pick * len(running))]
                try:
                    victim.kill()
                except psutil.NoSuchProcess:
                    return
                self.log.add("worker", f"worker of {victim.function.removeprefix('asya-chaos-')} killed")
            return
        try:
            running_runs = [run for run in self.cloud.runs() if run["state"] in {"SCHEDULED", "RUNNING"}]
        except (ClientError, BotoCoreError):
            return  # the stand-in throttles this call too
        if running_runs:
            victim_run = running_runs[int(fault.pick * len(running_runs))]
            if self.cloud.kill_run(victim_run["id"]):
                self.log.add("driver", f"driver of {victim_run['name']} killed")
