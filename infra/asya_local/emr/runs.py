"""A job run: its request, its states with their transitions, and its resource use."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya_local.emr.capacity import Resources, Size


class RunState(StrEnum):
    """The states of a job run on EMR Serverless."""

    SUBMITTED = "SUBMITTED"
    QUEUED = "QUEUED"
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"


_FAILURES = frozenset({RunState.FAILED, RunState.CANCELLING})

_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.SUBMITTED: _FAILURES | {RunState.QUEUED, RunState.PENDING},
    RunState.QUEUED: _FAILURES | {RunState.PENDING},
    RunState.PENDING: _FAILURES | {RunState.SCHEDULED},
    RunState.SCHEDULED: _FAILURES | {RunState.RUNNING},
    RunState.RUNNING: _FAILURES | {RunState.SUCCESS},
    # A job may end by itself while it is being canceled.
    RunState.CANCELLING: frozenset({RunState.CANCELLED, RunState.SUCCESS, RunState.FAILED}),
    RunState.SUCCESS: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
}

TERMINAL = frozenset(state for state, successors in _TRANSITIONS.items() if not successors)
ACTIVE = frozenset({RunState.PENDING, RunState.SCHEDULED, RunState.RUNNING, RunState.CANCELLING})
"""The states in which a run uses capacity of the application."""
WAITING = frozenset({RunState.SUBMITTED, RunState.QUEUED})


def may_transition(current: RunState, to: RunState) -> bool:
    """Return whether a transition leads from one state to the other."""
    return to in _TRANSITIONS[current]


DEFAULT_TIMEOUT_MINUTES = 720
MAX_DETAILS_LENGTH = 256
MINIMUM_BILLED = timedelta(minutes=1)

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class IllegalTransitionError(Exception):
    """A transition that EMR Serverless does not have: a bug of the stand-in."""


@dataclass(frozen=True)
class StateChange:
    """The transition of a run from one state to another."""

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
    """One job run. Changes only under the lock of its registry."""

    run_id: str
    application_id: str
    arn: str
    release_label: str
    created_by: str
    created_at: datetime
    request: Mapping[str, Any]
    """The parameters of StartJobRun."""
    conf: Mapping[str, str]
    size: Size
    executors: int | None = None
    """The executors that it has; None while only its driver has room."""
    state: RunState = RunState.SUBMITTED
    details: str = "JobRun submitted"
    updated_at: datetime = field(init=False)
    queued_at: datetime | None = None
    left_queue_at: datetime | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cancel_reason: str = ""

    def __post_init__(self) -> None:
        self.updated_at = self.created_at

    @property
    def name(self) -> str:
        """The name of the request; the id is the default."""
        return str(self.request.get("name") or self.run_id)

    @property
    def timeout(self) -> timedelta:
        """The time limit of the state RUNNING. Zero minutes mean the default, because only streaming jobs have no limit."""
        return timedelta(minutes=self.request.get("executionTimeoutMinutes") or DEFAULT_TIMEOUT_MINUTES)

    @property
    def used(self) -> Resources:
        """The resources that it holds while it is active."""
        return self.size.with_executors(self.executors or 0)

    def transition(self, to: RunState, at: datetime, details: str) -> StateChange:
        """Change the state.

        Raises:
            IllegalTransitionError: No transition leads from the current state to the new one.
        """
        if not may_transition(self.state, to):
            raise IllegalTransitionError(f"{self.run_id}: no transition from {self.state} to {to}")
        previous, self.state, self.updated_at = self.state, to, at
        self.details = details[:MAX_DETAILS_LENGTH] or str(to)
        if to is RunState.QUEUED:
            self.queued_at = at
        elif previous is RunState.QUEUED:
            self.left_queue_at = at
        if to is RunState.SCHEDULED:
            self.scheduled_at = at
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
        """Return the summary of ListJobRuns."""
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
        """Return the description of GetJobRun. `now` ends the durations of an active run."""
        description = {key: value for key, value in self.summary().items() if key not in {"id"}}
        description["jobRunId"] = self.run_id
        description["jobDriver"] = self.request["jobDriver"]
        description["executionTimeoutMinutes"] = int(self.timeout.total_seconds() // 60)
        description["retryPolicy"] = self.request.get("retryPolicy", {"maxAttempts": 1})
        description["tags"] = dict(self.request.get("tags", {}))
        for optional in ("executionIamPolicy", "configurationOverrides"):
            if optional in self.request:
                description[optional] = self.request[optional]
        if self.queued_at:
            queued = (self.left_queue_at or self.ended_at or now) - self.queued_at
            description["queuedDurationMilliseconds"] = int(queued.total_seconds() * 1000)
        if self.started_at:
            duration = (self.ended_at or now) - self.started_at
            description["startedAt"] = self.started_at
            description["totalExecutionDurationSeconds"] = int(duration.total_seconds())
            description["totalResourceUtilization"] = self._utilization(duration)
            if self.ended_at:
                description["billedResourceUtilization"] = self._utilization(_billed(duration))
        if self.ended_at:
            description["endedAt"] = self.ended_at
        return description

    def _utilization(self, duration: timedelta) -> dict[str, float]:
        hours, used = duration.total_seconds() / 3600, self.used
        return {
            "vCPUHour": round(used.vcpu * hours, 6),
            "memoryGBHour": round(used.memory_gb * hours, 6),
            "storageGBHour": round(used.disk_gb * hours, 6),
        }


def _billed(duration: timedelta) -> timedelta:
    """Return the billed duration: whole seconds, and at least one minute."""
    return max(timedelta(seconds=math.ceil(duration.total_seconds())), MINIMUM_BILLED)


def new_run_id() -> str:
    """Return a random id in the format of EMR Serverless."""
    return "00" + "".join(secrets.choice(_ALPHABET) for _ in range(14))
