"""Diverts canceled and late envelopes when a run is formed and when its results are routed (`protocol §10`)."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from asya.function.delivery import Diversion
from asya.function.hop import Hop
from asya.function.outage_words import Outages, no_outages
from asya.protocol import names, status
from asya.protocol.errors import ErrorInfo
from asya.protocol.times import format_time
from asya.sidecar.arrival import LATE_COPY, MIN_TIME_LEFT, divert
from asya.sidecar.late_copies import is_late_copy
from asya.tasks.task_state import TaskState


def check_before_run(
    hop: Hop, state: TaskState | None, *, now: datetime, outages: Outages = no_outages
) -> Diversion | None:
    """The diversion of an envelope that is canceled or too late to join a run; None if it may run."""
    if is_late_copy(hop, state):
        return _canceled_late_copy(hop, state)
    return _canceled(hop, state, now) or _too_late(hop, MIN_TIME_LEFT, f"before {hop.actor} started", now, outages)


def check_after_run(
    hop: Hop, state: TaskState | None, *, now: datetime, outages: Outages = no_outages
) -> Diversion | None:
    """The diversion of an envelope that was canceled, or missed its deadline, during its run; None if it continues."""
    if is_late_copy(hop, state):
        return _canceled_late_copy(hop, state)
    when = f"before the results of {hop.actor} were routed"
    return _canceled(hop, state, now) or _too_late(hop, timedelta(0), when, now, outages)


def with_late_copy(hop: Hop, state: TaskState | None) -> Hop:
    """The hop, marked if only its later frames may leave; the deadline of such a hop is void (`protocol §5.4`)."""
    return replace(hop, is_late_copy=True, deadline=None) if is_late_copy(hop, state) else hop


def is_too_late_to_start(deadline_at: datetime | None, now: datetime) -> bool:
    """Whether a deadline leaves too little time to start; this needs no envelope."""
    return deadline_at is not None and deadline_at - now < MIN_TIME_LEFT


def _canceled_late_copy(hop: Hop, state: TaskState | None) -> Diversion | None:
    is_canceled = state is not None and state.is_canceled
    return Diversion(hop.envelope.id, (), LATE_COPY) if is_canceled else None


def _canceled(hop: Hop, state: TaskState | None, now: datetime) -> Diversion | None:
    if state is None or not state.is_canceled:
        return None
    ended = status.ended(hop.status, phase="canceled", reason="Canceled", now=format_time(now))
    return divert(hop, names.SINK, ended, why="Canceled")


def _too_late(hop: Hop, least: timedelta, when: str, now: datetime, outages: Outages) -> Diversion | None:
    if hop.deadline is None or hop.deadline - now >= least:
        return None
    message = f"Deadline {format_time(hop.deadline)} passed {when}{outages(hop.began_at)}"
    error = ErrorInfo(type="Timeout", message=message)
    ended = status.failed(hop.status, reason="Timeout", now=format_time(now), error=error)
    return divert(hop, names.SINK, ended, why="SlaExpired")
