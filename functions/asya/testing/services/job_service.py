"""EMR Serverless, simulated: states of runs, tokens, throttling, capacity, and events that may not come."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol

from asya.protocol.job_runs import COMMIT_FILE, RUNS_PREFIX
from asya.testing.services.process import Simulation


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


APPLICATION = "00simulated"
TERMINAL = frozenset({"SUCCESS", "FAILED", "CANCELLED"})


class RefusedError(Exception):
    """EMR Serverless refuses a call; `code` is its error code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class DriverHandle(Protocol):
    """A running driver."""

    def kill(self) -> None:
        """Kills the driver at once."""


# Starts a driver for a run; the function receives whether the driver succeeded.
StartDriver = Callable[["JobRun", Callable[[bool], None]], DriverHandle]


@dataclass
class JobRun:
    """One job run.

    Attributes:
        created_at: virtual seconds.
        began_at, ended_at: virtual seconds; None before the first driver, and before the end.
        drivers: all drivers that were started, also the failed ones.
        is_abandoned: EMR Serverless ignores the end of its driver.
        failure: how its driver failed, in the words of EMR Serverless.
    """

    job_run_id: str
    name: str
    token: str
    request: Mapping[str, Any]
    created_at: float
    began_at: float | None = None
    ended_at: float | None = None
    state: str = "SUBMITTED"
    details: str = ""
    drivers: list[DriverHandle] = field(default_factory=list)
    is_abandoned: bool = False
    failure: str = "ExitCode: 1."

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.state in TERMINAL

    @property
    def manifest_uri(self) -> str:
        """The manifest in the arguments of its driver."""
        return self.argument("--manifest")

    @property
    def submit_parameters(self) -> str:
        """The options of spark-submit for its driver."""
        return str(self.request["jobDriver"]["sparkSubmit"].get("sparkSubmitParameters", ""))

    def argument(self, name: str) -> str:
        """An argument of its driver; empty without one."""
        arguments = self.request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
        return str(arguments[arguments.index(name) + 1]) if name in arguments else ""


@dataclass
class JobService:
    """The simulated application.

    Attributes:
        send_event: sends an event to the target of EventBridge's rule.
        note: called with each new run.
    """

    simulation: Simulation
    faults: JobFaults
    send_event: Callable[[str], None]
    start_driver: StartDriver
    note: Callable[["JobRun"], None]
    runs: dict[str, JobRun] = field(default_factory=dict)
    _by_token: dict[str, JobRun] = field(default_factory=dict)
    _tokens: float = 1.0
    _filled_at: float = 0.0

    # --- calls -----------------------------------------------------------------------------------------------------

    def start(self, request: Mapping[str, Any]) -> JobRun:
        """StartJobRun: the same token gives the same run while the service remembers it.

        Raises:
            RefusedError: if throttled, at capacity, or the token belongs to another request.
        """
        run = self._by_token.get(request["clientToken"])
        if run is not None and self._now - run.created_at < self.faults.forgets_tokens_after:
            if run.request != request:
                raise RefusedError("ConflictException")
            return run
        if not self._has_token():
            raise RefusedError("ThrottlingException")
        if self._is_full and self.faults.when_full == "refused":
            raise RefusedError(
                self.simulation.random.choice(
                    ("ServiceQuotaExceededException", "ApplicationMaxCapacityExceededException")
                )
            )
        run = JobRun(f"run-{len(self.runs) + 1}", request["name"], request["clientToken"], request, self._now)
        self.runs[run.job_run_id] = self._by_token[run.token] = run
        self.note(run)
        self._change(run, "SUBMITTED")
        self._schedule(run)
        return run

    def get(self, job_run_id: str) -> JobRun:
        """GetJobRun.

        Raises:
            RefusedError: if the run is unknown.
        """
        if job_run_id not in self.runs:
            raise RefusedError("ResourceNotFoundException")
        return self.runs[job_run_id]

    def cancel(self, job_run_id: str) -> JobRun:
        """CancelJobRun.

        Raises:
            RefusedError: if the run is unknown or has ended.
        """
        run = self.get(job_run_id)
        if run.is_over:
            raise RefusedError("ValidationException")
        self._end(run, "CANCELLED", "Canceled by the mesh.")
        return run

    def listed(self, since: datetime) -> list[JobRun]:
        """ListJobRuns: the runs created since then, newest first."""
        runs = [run for run in self.runs.values() if self.simulation.scheduler.at(run.created_at) > since]
        return sorted(runs, key=lambda run: run.created_at, reverse=True)

    # --- the life of a run -----------------------------------------------------------------------------------------

    def _schedule(self, run: JobRun) -> None:
        """Waits for capacity, then for a machine."""
        if self._is_full_without(run):
            self._change(run, "QUEUED")
            self.simulation.scheduler.after(5.0, lambda: self._schedule(run) if not run.is_over else None)
            self._perhaps_cancel(run)
            return
        self._change(run, "SCHEDULED")
        wait = (
            0.0
            if self._happens(self.faults.early_events)
            else self.simulation.random.uniform(0.5, self.faults.longest_start)
        )
        self.simulation.scheduler.after(wait, lambda: self._begin(run))
        self._perhaps_cancel(run)

    def _begin(self, run: JobRun) -> None:
        if run.is_over:
            return
        run.began_at = self._now
        self._change(run, "RUNNING")
        self._drive(run)
        limit = run.request["executionTimeoutMinutes"] * 60.0
        self.simulation.scheduler.after(limit, lambda: self._end(run, "CANCELLED", "Job run timed out."))
        if self._happens(self.faults.killed_drivers):
            self._later(60.0, lambda: self._end(run, "FAILED", "Driver ran out of memory (exit code 137)."))
        if self._happens(self.faults.orphaned_drivers):
            self._later(60.0, lambda: self._abandon(run))
        if self._happens(self.faults.second_drivers):
            self._later(60.0, lambda: self._drive(run) if run.state == "RUNNING" else None)

    def _drive(self, run: JobRun) -> None:
        run.drivers.append(self.start_driver(run, lambda succeeded: self._driver_ended(run, succeeded)))

    def _driver_ended(self, run: JobRun, succeeded: bool) -> None:
        """Ends the run with its first driver; the end of a second driver is ignored."""
        if run.is_abandoned or run.is_over:
            return
        delay = self.simulation.random.uniform(0.1, 3.0)
        details = f"Job failed, please check complete logs in configured logging destination. {run.failure}"
        state, details = ("SUCCESS", "") if succeeded else ("FAILED", details)
        self.simulation.scheduler.after(delay, lambda: self._end(run, state, details, kills=False))

    def _perhaps_cancel(self, run: JobRun) -> None:
        if self._happens(self.faults.canceled_runs):
            self._later(90.0, lambda: self._end(run, "CANCELLED", "Canceled by an operator."))

    def _abandon(self, run: JobRun) -> None:
        run.is_abandoned = True
        self._end(run, "FAILED", "The driver does not answer.", kills=False)

    def _end(self, run: JobRun, state: str, details: str, *, kills: bool = True) -> None:
        if run.is_over:
            return
        run.details, run.ended_at = details, self._now
        if kills:
            for driver in run.drivers:
                driver.kill()
        self._change(run, state)

    def _change(self, run: JobRun, state: str) -> None:
        if state == run.state and state != "SUBMITTED":
            return
        run.state = state
        self._log(f"{run.job_run_id} ({run.name}) is {state} {run.details}")
        if state in (*TERMINAL, "RUNNING") or self.simulation.random.random() < 0.2:
            self._send_event_of(run, state)

    # --- events ----------------------------------------------------------------------------------------------------

    def object_written(self, key: str) -> None:
        """S3 notifies EventBridge of a new object."""
        if fnmatchcase(key, f"{RUNS_PREFIX}*/{COMMIT_FILE}"):
            detail = {"bucket": {"name": "the mesh's"}, "object": {"key": key}}
            text = json.dumps({"source": "aws.s3", "detail-type": "Object Created", "detail": detail})
            self._send(text, f"that {key} was written")

    def _send_event_of(self, run: JobRun, state: str) -> None:
        self._send(_event(run, state), f"that {run.job_run_id} is {state}")

    def _send(self, text: str, what: str) -> None:
        if self._happens(self.faults.lost_events):
            self._log(f"the event {what} is lost")
            return
        # Without a delay the event may arrive before the response to StartJobRun.
        delay = 0.0 if self._happens(self.faults.early_events) else self.simulation.random.uniform(0.05, 2.0)
        if self._happens(self.faults.late_events):
            delay = self.simulation.random.uniform(30.0, 900.0)
        self.simulation.scheduler.after(delay, lambda: self.send_event(text))
        if self._happens(self.faults.repeated_events):
            self.simulation.scheduler.after(
                delay + self.simulation.random.uniform(0.0, 400.0), lambda: self.send_event(text)
            )

    # --- limits ----------------------------------------------------------------------------------------------------

    def _has_token(self) -> bool:
        passed = self._now - self._filled_at
        self._tokens = min(self.faults.burst, self._tokens + passed * self.faults.starts_per_second)
        self._filled_at = self._now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    @property
    def _is_full(self) -> bool:
        running = sum(not run.is_over for run in self.runs.values())
        return self.faults.capacity is not None and running >= self.faults.capacity

    def _is_full_without(self, run: JobRun) -> bool:
        running = sum(other.state in ("SCHEDULED", "RUNNING") for other in self.runs.values() if other is not run)
        return self.faults.capacity is not None and running >= self.faults.capacity

    # --- parts -----------------------------------------------------------------------------------------------------

    def _later(self, longest: float, do: Callable[[], None]) -> None:
        self.simulation.scheduler.after(self.simulation.random.uniform(0.1, longest), do)

    def _happens(self, rate: float) -> bool:
        return self.simulation.faults.happens(rate, self._now)

    def _log(self, what: str) -> None:
        self.simulation.log.note(self._now, "emr-serverless", what)

    @property
    def _now(self) -> float:
        return self.simulation.scheduler.seconds


def _event(run: JobRun, state: str) -> str:
    """The event in the form of EventBridge, without details."""
    return json.dumps(
        {
            "version": "0",
            "source": "aws.emr-serverless",
            "detail-type": "EMR Serverless Job Run State Change",
            "detail": {
                "applicationId": APPLICATION,
                "jobRunId": run.job_run_id,
                "jobRunName": run.name,
                "state": state,
                "previousState": run.state,
            },
        }
    )
