"""The states of a job run and the ways between them. Pure."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """The states EMR Serverless gives a job run."""

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
    # A job that ended while it was being cancelled ended as it ended.
    RunState.CANCELLING: frozenset({RunState.CANCELLED, RunState.SUCCESS, RunState.FAILED}),
    RunState.SUCCESS: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
}

TERMINAL = frozenset(state for state, ways in _TRANSITIONS.items() if not ways)
HOLDING = frozenset({RunState.PENDING, RunState.SCHEDULED, RunState.RUNNING, RunState.CANCELLING})
"""The states in which a run holds a part of the application's capacity."""
WAITING = frozenset({RunState.SUBMITTED, RunState.QUEUED})


def may_transition(current: RunState, to: RunState) -> bool:
    """Whether a run can go from one state straight to the other."""
    return to in _TRANSITIONS[current]
