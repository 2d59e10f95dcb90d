"""The states of a job run and their transitions. Pure."""

from __future__ import annotations

from enum import StrEnum


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
