"""Holds all applications and runs. The state of a run changes only here.

Calls have rate limits, and client tokens make StartJobRun idempotent.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from asya_local.emr.errors import not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asya_local.emr.runs import JobRun, RunState, StateChange
    from asya_local.emr.settings import ApplicationSettings, EmrSettings


@dataclass
class TokenBucket:
    """A token bucket that fills at `per_second` up to `burst`; each call takes one token."""

    per_second: float
    burst: int
    _tokens: float = -1.0
    _filled_at: float = 0.0

    def take(self, now: float) -> bool:
        """Take a token at the monotonic time `now`; return False if the caller is throttled."""
        if self._tokens < 0:
            self._tokens = float(self.burst)
        else:
            self._tokens = min(self.burst, self._tokens + max(0.0, now - self._filled_at) * self.per_second)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class TokenMismatchError(Exception):
    """A client token is repeated with other parameters."""


@dataclass(frozen=True)
class _TokenUse:
    fingerprint: str
    run_id: str


class ClientTokens:
    """The run of each client token of one application. Tokens do not expire."""

    def __init__(self) -> None:
        self._uses: dict[str, _TokenUse] = {}

    def find(self, token: str, fingerprint: str) -> str | None:
        """Return the id of the run that this token started, or None for a new token.

        Raises:
            TokenMismatchError: The first request with this token had other parameters.
        """
        use = self._uses.get(token)
        if use is None:
            return None
        if use.fingerprint != fingerprint:
            raise TokenMismatchError(token)
        return use.run_id

    def save(self, token: str, fingerprint: str, run_id: str) -> None:
        """Save the run that a new token started."""
        self._uses[token] = _TokenUse(fingerprint, run_id)


@dataclass
class Application:
    """A Spark application."""

    settings: ApplicationSettings
    arn: str
    created_at: datetime
    state: str = "CREATED"
    updated_at: datetime = field(init=False)
    tokens: ClientTokens = field(default_factory=ClientTokens)

    def __post_init__(self) -> None:
        self.updated_at = self.created_at

    def set_state(self, state: str, at: datetime) -> None:
        """Set the state, such as `STARTED`."""
        self.state, self.updated_at = state, at

    def summary(self) -> dict[str, Any]:
        """Return the summary of ListApplications."""
        return {
            "id": self.settings.application_id,
            "name": self.settings.name,
            "arn": self.arn,
            "releaseLabel": self.settings.release_label,
            "type": "Spark",
            "state": self.state,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "architecture": "ARM64",
        }

    def description(self) -> dict[str, Any]:
        """Return the description of GetApplication."""
        summary = {key: value for key, value in self.summary().items() if key != "id"}
        return {
            **summary,
            "applicationId": self.settings.application_id,
            "maximumCapacity": {"cpu": f"{self.settings.max_vcpu} vCPU", "memory": f"{self.settings.max_memory_gb} GB"},
            "autoStartConfiguration": {"enabled": True},
            "autoStopConfiguration": {"enabled": True, "idleTimeoutMinutes": 15},
            "schedulerConfiguration": {
                "queueTimeoutMinutes": self.settings.queue_timeout_minutes,
                "maxConcurrentRuns": self.settings.max_concurrent_runs,
            },
            "tags": {},
        }


class RunRegistry:
    """All applications and runs, under one lock. Passes each state change to `on_changes`, in order."""

    def __init__(self, settings: EmrSettings, on_changes: Callable[[Sequence[StateChange]], None]) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._on_changes = on_changes
        self._runs: dict[str, JobRun] = {}
        self._applications: dict[str, Application] = {}
        self.arn_prefix = f"arn:aws:emr-serverless:{settings.region}:{settings.account_id}:/applications/"
        self.add_application(settings.application)

    def add_application(self, settings: ApplicationSettings) -> Application:
        """Add an application in the state `CREATED`."""
        with self.changed:
            arn = self.arn_prefix + settings.application_id
            application = Application(settings, arn, now())
            self._applications[settings.application_id] = application
            return application

    def applications(self) -> list[Application]:
        """Return all applications, the oldest first."""
        with self.changed:
            return list(self._applications.values())

    def application(self, application_id: str) -> Application:
        """Return an application.

        Raises:
            ServiceError: The application does not exist.
        """
        with self.changed:
            application = self._applications.get(application_id)
        if application is None:
            raise not_found("Application", application_id)
        return application

    def add(self, run: JobRun) -> None:
        """Add a run and wake the scheduler."""
        with self.changed:
            self._runs[run.run_id] = run
            self.changed.notify_all()

    def run(self, application_id: str, run_id: str) -> JobRun:
        """Return a run of an application.

        Raises:
            ServiceError: The application or the run does not exist.
        """
        self.application(application_id)
        with self.changed:
            run = self._runs.get(run_id)
        if run is None or run.application_id != application_id:
            raise not_found("JobRun", run_id)
        return run

    def runs(self, application_id: str | None = None) -> list[JobRun]:
        """Return all runs, or those of one application, the oldest first."""
        with self.changed:
            return [run for run in self._runs.values() if application_id in {None, run.application_id}]

    def transition(self, run: JobRun, *steps: tuple[RunState, str]) -> None:
        """Move a run through one or more states, each with its details."""
        with self.changed:
            self._on_changes([run.transition(state, now(), details) for state, details in steps])
            self.changed.notify_all()


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
