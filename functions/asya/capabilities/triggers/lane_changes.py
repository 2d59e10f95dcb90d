"""Decides how a lane changes: by an occurrence, the end of a window, and the end of a task (`protocol §16.overlap`)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace

from asya.capabilities.triggers.lanes import (
    MOST_QUEUED,
    Entry,
    Lane,
    LaneFullError,
    Start,
    Window,
    window_kind,
    window_start,
)
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Overlap, Trigger

LONGEST_DEBOUNCE = timedelta(hours=1)
"""A window closes this long after it was opened, also without silence."""
BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of the payloads of one batch."""

MOST_STARTS = 25
"""Starts that a lane notes before they are performed, unless more arrive."""

Outcome = Literal["started", "queued", "skipped", "gathered"]


@dataclass(frozen=True, slots=True)
class Change:
    """How a lane changes.

    Attributes:
        lane: the lane after it.
        outcome: what was decided about the occurrence, or about the window.
        kept_for: the start that the payload of the occurrence is kept for; None if it is not kept.
        queued: the start that waits from now on.
        released: the start that waits no more.
        opens: whether it opens a window.
        closed: the start of the window that closes.
    """

    lane: Lane
    outcome: Outcome
    kept_for: Start | None = None
    queued: Start | None = None
    released: Start | None = None
    opens: bool = False
    closed: Start | None = None


def arrive(lane: Lane, trigger: Trigger, entry: Entry, now: datetime) -> Change:
    """Decide about an occurrence. `settle` has nothing more to do in the lane.

    Args:
        lane: the lane so far.
        trigger: the settings.
        entry: the occurrence.
        now: the time.

    Raises:
        LaneFullError: it would have to wait, and no more may wait.
    """
    kind, start, size = window_kind(trigger), entry.start, entry.size
    if kind is None:
        change = admit(lane, trigger.overlap, start)
        return change if change.outcome == "skipped" else _kept(change, start)
    if lane.window is None:
        window = _opened(trigger, window_start(entry.occurrence.trigger, kind, start), start, size, now)
        return Change(replace(lane, window=window), "gathered", window.start, opens=True)
    if ends(lane.window, trigger, now, size):
        raise LaneFullError(f"{MOST_QUEUED:,} starts of the trigger wait already, so its window cannot close")
    window, is_last = lane.window, start.order > lane.window.last
    grown = replace(
        window,
        count=window.count + 1,
        size=window.size + size,
        last=max(window.last, start.order),
        due=_extended(window, trigger, now) if kind == "debounce" else window.due,
    )
    is_kept = kind == "batch" or is_last
    return Change(replace(lane, window=grown), "gathered", window.start if is_kept else None)


def admit(lane: Lane, overlap: Overlap, start: Start) -> Change:
    """Decide about a start.

    Raises:
        LaneFullError: it would have to wait, and no more may wait.
    """
    if len(lane.starting) >= MOST_QUEUED and overlap != "skip":
        # No process can perform them now, and the item of the lane has 400 KB at most.
        raise LaneFullError(
            f"{MOST_QUEUED:,} starts of the trigger wait already; redrive this one when they have begun"
        )
    if overlap == "allow":
        return Change(replace(lane, starting=(*lane.starting, start)), "started")
    if _is_free(lane, overlap) and not lane.queued:
        return Change(_running(lane, start), "started")
    if overlap == "skip":
        return Change(lane, "skipped")
    if overlap == "cancel-previous" and lane.running is not None:
        return Change(_running(replace(lane, canceling=(*lane.canceling, lane.running)), start), "started")
    return enqueue(lane, start)


def enqueue(lane: Lane, start: Start) -> Change:
    """Let a start wait.

    Raises:
        LaneFullError: no more may wait.
    """
    if lane.queued >= MOST_QUEUED:
        raise LaneFullError(
            f"{MOST_QUEUED:,} starts of the trigger wait already; redrive this one when they have ended"
        )
    return Change(replace(lane, queued=lane.queued + 1), "queued", queued=start)


def settle(lane: Lane, trigger: Trigger, now: datetime, *, oldest: Start | None, size: int = 0) -> Change | None:
    """The next change that no occurrence causes: the end of a window, or the release of a start.

    Args:
        lane: the lane, without the awaited tasks that have ended.
        trigger: the settings.
        now: the time.
        oldest: the oldest start that waits.
        size: bytes of the payload that is about to join the window; 0 for none.

    Returns:
        None if nothing is to be done.
    """
    if not trigger.enabled:
        return None
    if trigger.overlap == "allow" and (lane.running is not None or lane.canceling):
        return Change(replace(lane, running=None, canceling=()), "started")
    if lane.queued and _is_free(lane, trigger.overlap) and len(lane.starting) < MOST_STARTS:
        return _release(lane, trigger, oldest)
    if lane.window is None or not ends(lane.window, trigger, now, size):
        return None
    # A window that was opened before a deployment is not skipped.
    overlap: Overlap = "queue" if trigger.overlap == "skip" else trigger.overlap
    try:
        change = admit(replace(lane, window=None), overlap, lane.window.start)
    except LaneFullError:
        return None
    return Change(change.lane, change.outcome, queued=change.queued, closed=lane.window.start)


def ends(window: Window, trigger: Trigger, now: datetime, size: int = 0) -> bool:
    """Whether a window ends now, or before a payload of this size."""
    if window.start.window != window_kind(trigger) or parse_time(window.due) <= now:
        return True
    return trigger.batch is not None and (window.count >= trigger.batch.size or window.size + size > BATCH_BYTES)


def awaited(lane: Lane, trigger: Trigger) -> frozenset[str]:
    """The ids of started tasks whose end lets the lane go on.

    A trigger that cancels no more waits for the tasks that it was about to cancel.
    """
    ids = {lane.running, *(() if trigger.overlap == "cancel-previous" else lane.canceling)} - {None}
    return frozenset(task_id for task_id in ids if task_id is not None and not lane.starts(task_id))


def without_ended(lane: Lane, ended: Collection[str]) -> Lane:
    """The lane after the end of awaited tasks."""
    running = None if lane.running in ended else lane.running
    return replace(lane, running=running, canceling=tuple(each for each in lane.canceling if each not in ended))


def startable(lane: Lane, trigger: Trigger) -> tuple[Start, ...]:
    """The noted starts to perform, in order.

    A trigger that cancels no more starts those that were to cancel each other one by one, each after the end of the last.
    """
    if trigger.overlap == "cancel-previous" or not lane.canceling:
        return lane.starting
    waits = any(not lane.starts(task_id) for task_id in lane.canceling)
    return () if waits else lane.starting[:1]


def performed(lane: Lane, started: frozenset[str], canceled: frozenset[str], failed: frozenset[str]) -> Lane:
    """The lane after starts and cancellations that were performed; a start that failed for ever runs no task."""
    return replace(
        lane,
        starting=tuple(start for start in lane.starting if start.id not in started | failed),
        canceling=tuple(each for each in lane.canceling if each not in canceled | failed),
        running=None if lane.running in failed else lane.running,
    )


def _is_free(lane: Lane, overlap: Overlap) -> bool:
    """Whether nothing runs in a lane, as far as it knows."""
    return lane.running is None and (overlap == "cancel-previous" or not lane.canceling)


def _release(lane: Lane, trigger: Trigger, oldest: Start | None) -> Change:
    if oldest is None:
        # The waiting starts have outlived the retention of tasks.
        return Change(replace(lane, queued=0), "skipped")
    released = replace(lane, queued=lane.queued - 1)
    if trigger.overlap == "allow":
        return Change(replace(released, starting=(*lane.starting, oldest)), "started", released=oldest)
    return Change(_running(released, oldest), "started", released=oldest)


def _running(lane: Lane, start: Start) -> Lane:
    return replace(lane, running=start.id, starting=(*lane.starting, start))


def _kept(change: Change, start: Start) -> Change:
    return Change(change.lane, change.outcome, start, change.queued, change.released)


def _opened(trigger: Trigger, start: Start, first: Start, size: int, now: datetime) -> Window:
    latest = now + _longest(trigger)
    due = min(now + timedelta(seconds=trigger.debounce), latest) if trigger.debounce is not None else latest
    return Window(start=start, due=format_time(due), latest=format_time(latest), count=1, size=size, last=first.order)


def _longest(trigger: Trigger) -> timedelta:
    return timedelta(seconds=trigger.batch.window) if trigger.batch is not None else LONGEST_DEBOUNCE


def _extended(window: Window, trigger: Trigger, now: datetime) -> str:
    due = format_time(now + timedelta(seconds=trigger.debounce or 0.0))
    # Occurrences are processed at once by several processes, whose clocks differ.
    return min(max(window.due, due), window.latest)
