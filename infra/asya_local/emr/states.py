"""The states of a job run and the ways between them. Pure."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
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


_ENDS = frozenset({State.FAILED, State.CANCELLING})

_WAYS: dict[State, frozenset[State]] = {
    State.SUBMITTED: _ENDS | {State.QUEUED, State.PENDING},
    State.QUEUED: _ENDS | {State.PENDING},
    State.PENDING: _ENDS | {State.SCHEDULED},
    State.SCHEDULED: _ENDS | {State.RUNNING},
    State.RUNNING: _ENDS | {State.SUCCESS},
    # A job that ended while it was being cancelled ended as it ended.
    State.CANCELLING: frozenset({State.CANCELLED, State.SUCCESS, State.FAILED}),
    State.SUCCESS: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}

TERMINAL = frozenset(state for state, ways in _WAYS.items() if not ways)
HOLDING = frozenset({State.PENDING, State.SCHEDULED, State.RUNNING, State.CANCELLING})
"""The states in which a run holds a part of the application's capacity."""
WAITING = frozenset({State.SUBMITTED, State.QUEUED})


def may_move(current: State, to: State) -> bool:
    """Whether a run can go from one state straight to the other."""
    return to in _WAYS[current]
