"""A job run: what was asked, where it stands, and what it has used."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from asya_local.emr.states import TERMINAL, RunState, may_transition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya_local.emr.capacity import Size

DEFAULT_TIMEOUT_MINUTES = 720
LONGEST_DETAILS = 256
MINIMUM_BILLED = timedelta(minutes=1)

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class IllegalTransitionError(Exception):
    """A state change that the service does not know; a mistake of the stand-in."""


@dataclass(frozen=True)
class StateChange:
    """A run went from one state to another."""

    run_id: str
    name: str
    application_id: str
    arn: str
    release_label: str
    created_by: str
    created_at: datetime
    previous: RunState
    state: RunState
    at: datetime


@dataclass
class JobRun:
    """One run of one job. Changed only under the lock of the book that holds it."""

    run_id: str
    application_id: str
    arn: str
    release_label: str
    created_by: str
    created_at: datetime
    request: Mapping[str, Any]
    """The parameters of StartJobRun, as they came."""
    conf: Mapping[str, str]
    size: Size
    state: RunState = RunState.SUBMITTED
    details: str = "JobRun submitted"
    updated_at: datetime = field(init=False)
    queued_at: datetime | None = None
    left_queue_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cancel_reason: str = ""

    def __post_init__(self) -> None:
        self.updated_at = self.created_at

    @property
    def name(self) -> str:
        """The requested name, or else the id."""
        return str(self.request.get("name") or self.run_id)

    @property
    def timeout(self) -> timedelta:
        """How long the run may be RUNNING; zero minutes mean no limit only for streaming jobs."""
        return timedelta(minutes=self.request.get("executionTimeoutMinutes") or DEFAULT_TIMEOUT_MINUTES)

    def transition(self, to: RunState, at: datetime, details: str) -> StateChange:
        """Change the run's state.

        Raises:
            IllegalTransitionError: There is no way from the run's state to the other.
        """
        if not may_transition(self.state, to):
            raise IllegalTransitionError(f"{self.run_id}: {self.state} to {to}")
        previous, self.state, self.updated_at = self.state, to, at
        self.details = details[:LONGEST_DETAILS] or str(to)
        if to is RunState.QUEUED:
            self.queued_at = at
        elif previous is RunState.QUEUED:
            self.left_queue_at = at
        if to is RunState.RUNNING:
            self.started_at = at
        if to in TERMINAL:
            self.ended_at = at
        return StateChange(
            self.run_id,
            self.name,
            self.application_id,
            self.arn,
            self.release_label,
            self.created_by,
            self.created_at,
            previous,
            to,
            at,
        )

    def summary(self) -> dict[str, Any]:
        """As ListJobRuns shows it."""
        return {
            "applicationId": self.application_id,
            "id": self.run_id,
            "name": self.name,
            "mode": self.request.get("mode", "BATCH"),
            "arn": self.arn,
            "createdBy": self.created_by,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "executionRole": self.request["executionRoleArn"],
            "state": str(self.state),
            "stateDetails": self.details,
            "releaseLabel": self.release_label,
            "attempt": 1,
            "attemptCreatedAt": self.created_at,
            "attemptUpdatedAt": self.updated_at,
        }

    def description(self, now: datetime) -> dict[str, Any]:
        """As GetJobRun shows it; `now` measures a run that is still at work."""
        shown = {key: value for key, value in self.summary().items() if key not in {"id"}}
        shown["jobRunId"] = self.run_id
        shown["jobDriver"] = self.request["jobDriver"]
        shown["executionTimeoutMinutes"] = int(self.timeout.total_seconds() // 60)
        shown["retryPolicy"] = self.request.get("retryPolicy", {"maxAttempts": 1})
        shown["tags"] = dict(self.request.get("tags", {}))
        for optional in ("executionIamPolicy", "configurationOverrides"):
            if optional in self.request:
                shown[optional] = self.request[optional]
        if self.queued_at:
            waited = (self.left_queue_at or self.ended_at or now) - self.queued_at
            shown["queuedDurationMilliseconds"] = int(waited.total_seconds() * 1000)
        if self.started_at:
            worked = (self.ended_at or now) - self.started_at
            shown["startedAt"] = self.started_at
            shown["totalExecutionDurationSeconds"] = int(worked.total_seconds())
            shown["totalResourceUtilization"] = self._utilization(worked)
            if self.ended_at:
                shown["billedResourceUtilization"] = self._utilization(_billed(worked))
        if self.ended_at:
            shown["endedAt"] = self.ended_at
        return shown

    def _utilization(self, worked: timedelta) -> dict[str, float]:
        hours = worked.total_seconds() / 3600
        return {
            "vCPUHour": round(self.size.vcpu * hours, 6),
            "memoryGBHour": round(self.size.memory_gb * hours, 6),
            "storageGBHour": round(self.size.disk_gb * hours, 6),
        }


def _billed(worked: timedelta) -> timedelta:
    """What is billed for: whole seconds, a minute at least."""
    return max(timedelta(seconds=math.ceil(worked.total_seconds())), MINIMUM_BILLED)


def new_run_id() -> str:
    """An id of the form the service gives its runs."""
    return "00" + "".join(secrets.choice(_ALPHABET) for _ in range(14))
