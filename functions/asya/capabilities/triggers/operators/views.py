"""What operators see of triggers and backfills, and the slots to come (`protocol §16.calls.show`, `§16.local`)."""

import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby, islice

from asya.capabilities.triggers.lanes import Lane
from asya.capabilities.triggers.occurrences import slot_key
from asya.capabilities.triggers.operators.answers import (
    BackfillView,
    EventPattern,
    LaneView,
    SlotView,
    SourceKind,
    TriggerView,
)
from asya.capabilities.triggers.operators.backfill import MOST_AT_ONCE, Backfill, NotedSlot
from asya.capabilities.triggers.slots import ScheduleState, last_slot, slots_after, slots_between
from asya.protocol import ids
from asya.protocol.states import ViewStatus
from asya.protocol.times import format_time
from asya.protocol.triggers import EventSource, Schedule, Trigger

NEXT_SLOTS = 3


def source_of(trigger: Trigger) -> SourceKind:
    """The source of a trigger."""
    if trigger.schedule is not None:
        return "cron"
    if trigger.objects is not None:
        return "s3"
    return "event" if trigger.event is not None else "webhook"


def last_slots(triggers: Mapping[str, Trigger], now: datetime) -> dict[str, SlotView]:
    """The last slot of each schedule, by the name of the trigger, without the status of its task."""
    slots: dict[str, SlotView] = {}
    for name, trigger in triggers.items():
        if trigger.schedule is not None and (slot := last_slot(trigger.schedule, now)) is not None:
            slots[name] = SlotView(at=format_time(slot), id=ids.occurrence_id(name, slot_key(slot)))
    return slots


def trigger_view(
    name: str, trigger: Trigger, state: ScheduleState | None, last: SlotView | None, now: datetime
) -> TriggerView:
    """The view of a trigger."""
    is_paused, schedule = state is not None and state.paused, trigger.schedule
    waits = trigger.enabled and not is_paused and schedule is not None
    return TriggerView(
        name=name,
        kind=source_of(trigger),
        tool=trigger.tool,
        route=trigger.route,
        enabled=trigger.enabled,
        paused=is_paused,
        overlap=trigger.overlap,
        cron=schedule.cron if schedule is not None else None,
        timezone=schedule.timezone if schedule is not None else None,
        objects=trigger.objects,
        event=_event(trigger.event) if trigger.event is not None else None,
        next=_next(schedule, now) if waits and schedule is not None else [],
        last=last,
    )


def _event(source: EventSource) -> EventPattern:
    return EventPattern(pattern=source.pattern, bus=source.bus)


def lane_view(lane: Lane) -> LaneView | None:
    """The view of a lane; None if nothing waits there."""
    if lane.is_empty:
        return None
    window = lane.window
    return LaneView(
        running=lane.running,
        queued=lane.queued,
        closes=window.due if window is not None else None,
        gathered=window.count if window is not None else 0,
    )


def _next(schedule: Schedule, now: datetime) -> list[str]:
    return [format_time(slot) for slot in islice(slots_after(schedule, now), NEXT_SLOTS)]


def listed_slots(backfill: Backfill) -> tuple[NotedSlot, ...]:
    """The noted slots that a view has: the newest ones, because the status of each costs a read."""
    return backfill.noted[-MOST_AT_ONCE:]


def backfill_view(
    backfill: Backfill, statuses: Mapping[str, ViewStatus | None], trigger: Trigger | None
) -> BackfillView:
    """The view of a backfill.

    Args:
        backfill: its state.
        statuses: those of its running tasks by id.
        trigger: its trigger; None if the mesh no longer has it.
    """
    noted = [(each.slot, backfill.task_id(each.slot)) for each in listed_slots(backfill)]
    running = [SlotView(at=slot, id=task_id, status=statuses.get(task_id)) for slot, task_id in noted]
    done = backfill.succeeded + backfill.failed + backfill.before + len(backfill.noted)
    return BackfillView(
        id=backfill.id,
        trigger=backfill.trigger,
        state=backfill.state,
        timezone=backfill.timezone,
        first=backfill.first,
        until=backfill.until,
        total=backfill.total,
        succeeded=backfill.succeeded,
        failed=backfill.failed,
        before=backfill.before,
        waiting=backfill.total - done,
        at_once=backfill.at_once,
        stop_after=backfill.stop_after,
        again=backfill.again,
        hold_paused=backfill.hold_paused,
        paused=backfill.paused,
        running=running,
        failures=list(backfill.failures),
        problem=_problem(backfill, trigger),
        by=backfill.by,
        created_at=backfill.created_at,
        updated_at=backfill.updated_at,
    )


def _problem(backfill: Backfill, trigger: Trigger | None) -> str | None:
    if backfill.has_ended:
        return None
    if trigger is None:
        return f"the mesh has no trigger {backfill.trigger!r} any more"
    if not trigger.enabled:
        return f"the trigger {backfill.trigger!r} is off"
    return None


def upcoming(
    triggers: Mapping[str, Trigger], kept: Mapping[str, ScheduleState], now: datetime, until: datetime
) -> Iterator[tuple[datetime, list[str]]]:
    """The times up to `until` at which slots are due that were not decided yet, each with the names of its triggers.

    Triggers that are off or paused have none.
    """
    slots = heapq.merge(*(_slots(name, trigger, kept.get(name), now, until) for name, trigger in triggers.items()))
    for moment, group in groupby(slots, key=lambda slot: slot[0]):
        yield moment, [name for _, name in group]


def _slots(
    name: str, trigger: Trigger, state: ScheduleState | None, now: datetime, until: datetime
) -> Iterator[tuple[datetime, str]]:
    if trigger.schedule is None or not trigger.enabled or (state is not None and state.paused):
        return
    after = max(now, state.decided) if state is not None else now
    for slot in slots_between(trigger.schedule, after, until):
        yield slot, name
