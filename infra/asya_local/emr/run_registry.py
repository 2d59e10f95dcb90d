"""The book of applications and runs: the only place where a run's state changes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from asya_local.emr.errors import not_found
from asya_local.emr.tokens import ClientTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asya_local.emr.runs import JobRun, StateChange
    from asya_local.emr.settings import ApplicationSettings, EmrSettings
    from asya_local.emr.states import RunState


@dataclass
class Application:
    """A Spark application; here it costs nothing to have one started."""

    settings: ApplicationSettings
    arn: str
    created_at: datetime
    state: str = "CREATED"
    updated_at: datetime = field(init=False)
    tokens: ClientTokens = field(default_factory=ClientTokens)

    def __post_init__(self) -> None:
        self.updated_at = self.created_at

    def set_state(self, state: str, at: datetime) -> None:
        """Start or stop the application."""
        self.state, self.updated_at = state, at

    def summary(self) -> dict[str, Any]:
        """As ListApplications shows it."""
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
        """As GetApplication shows it."""
        shown = {key: value for key, value in self.summary().items() if key != "id"}
        return {
            **shown,
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
    """All applications and runs, under one lock; tells `on_changes` of every change, in order."""

    def __init__(self, settings: EmrSettings, on_changes: Callable[[Sequence[StateChange]], None]) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._on_changes = on_changes
        self._runs: dict[str, JobRun] = {}
        self._applications: dict[str, Application] = {}
        self.arn_prefix = f"arn:aws:emr-serverless:{settings.region}:{settings.account_id}:/applications/"
        self.add_application(settings.application)

    def add_application(self, settings: ApplicationSettings) -> Application:
        """Enter an application."""
        with self.changed:
            arn = self.arn_prefix + settings.application_id
            application = Application(settings, arn, now())
            self._applications[settings.application_id] = application
            return application

    def applications(self) -> list[Application]:
        """All applications, in the order of their creation."""
        with self.changed:
            return list(self._applications.values())

    def application(self, application_id: str) -> Application:
        """An application by id; raises ServiceError when there is none."""
        with self.changed:
            found = self._applications.get(application_id)
        if found is None:
            raise not_found("Application", application_id)
        return found

    def add(self, run: JobRun) -> None:
        """Enter a run."""
        with self.changed:
            self._runs[run.run_id] = run
            self.changed.notify_all()

    def run(self, application_id: str, run_id: str) -> JobRun:
        """A run by the ids of its application and itself; raises ServiceError when there is none."""
        self.application(application_id)
        with self.changed:
            found = self._runs.get(run_id)
        if found is None or found.application_id != application_id:
            raise not_found("JobRun", run_id)
        return found

    def runs(self, application_id: str | None = None) -> list[JobRun]:
        """All runs, or one application's, the oldest first."""
        with self.changed:
            return [run for run in self._runs.values() if application_id in {None, run.application_id}]

    def transition(self, run: JobRun, *steps: tuple[RunState, str]) -> None:
        """Take a run through one or more states, each with its details."""
        with self.changed:
            self._on_changes([run.transition(state, now(), details) for state, details in steps])
            self.changed.notify_all()


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)
