"""A backfill: the slots of a schedule between two times, started some at a time (`protocol §16.backfill`).

`advance` decides one step from the records of the slots that were noted before. It starts nothing: the caller writes the new
state first and starts the tasks of its slots second, so a process that dies between the two leaves slots that the next step
starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

import msgspec
from msgspec.structs import replace

from asya.capabilities.triggers.occurrences import Occurrence, slot_key, slot_occurrence
from asya.capabilities.triggers.operators.answers import FailedSlot
from asya.capabilities.triggers.slots import slots_between
from asya.protocol import ids, states
from asya.protocol.states import BackfillState
from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Schedule, Trigger

MOST_SLOTS = 10_000
MOST_AT_ONCE = 100
MOST_PAUSED = 500
"""Paused tasks that give their place back; further ones keep it. Each step reads the records of all noted slots."""
KEPT_FAILURES = 20
"""Failures that the state names; the newest ones."""


class NotedSlot(msgspec.Struct, frozen=True):
    """A slot whose task runs or is to start.

    Attributes:
        is_started: whether the first message of its task was sent. Until then, each step starts it; it starts once.
    """

    slot: str
    is_started: bool = False


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a backfill.

    Attributes:
        cron, timezone: the schedule of the trigger when the backfill began.
        first, until: the earliest and the latest time of a slot.
        total: the number of slots.
        at_once: how many tasks run at a time.
        stop_after: after how many failures it stops; None to go on.
        again: whether slots start that were started before.
        hold_paused: whether a paused task keeps its place.
        by: the principal that began it.
        decided: the last slot that was noted or counted; None before the first.
        noted: the slots whose tasks run, pause or are to start.
        paused: how many of them had given their place back at the last step.
        before: how many slots had a task before.
        stop_at: the number of failures at which it stops; None to go on.
        failures: the newest failures, oldest first.
    """

    id: str
    trigger: str
    cron: str
    timezone: str
    first: str
    until: str
    total: int
    at_once: int
    stop_after: int | None = None
    again: bool = False
    hold_paused: bool = False
    by: str
    created_at: str
    updated_at: str
    state: BackfillState = states.RUNNING
    decided: str | None = None
    noted: tuple[NotedSlot, ...] = ()
    paused: int = 0
    succeeded: int = 0
    failed: int = 0
    before: int = 0
    stop_at: int | None = None
    failures: tuple[FailedSlot, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether another step may change it."""
        return self.is_running or bool(self.noted)

    @property
    def is_running(self) -> bool:
        """Whether it starts tasks."""
        return self.state == states.RUNNING

    @property
    def is_stopped(self) -> bool:
        """Whether it starts no tasks until an operator resumes it."""
        return self.state == states.STOPPED

    @property
    def is_canceled(self) -> bool:
        """Whether an operator has canceled it."""
        return self.state == states.CANCELED

    @property
    def has_ended(self) -> bool:
        """Whether it starts no tasks any more."""
        return self.state in (states.CANCELED, states.DONE)

    @property
    def room(self) -> int:
        """How many slots one more step may note, if all noted slots but these run on: at least one."""
        return max(1, self.free)

    @property
    def free(self) -> int:
        """How many places are free; below 0 if resumed tasks run beside those that took their places."""
        return self.at_once - (len(self.noted) - self.paused)

    @property
    def schedule(self) -> Schedule:
        """The schedule whose slots it has."""
        return Schedule(cron=self.cron, timezone=self.timezone)

    def key(self, slot: datetime) -> str:
        """The key of a slot: that of the schedule, or one of this backfill if it starts slots again."""
        return f"{slot_key(slot)} {self.id}" if self.again else slot_key(slot)

    def task_id(self, slot: str) -> str:
        """The id of the task of a slot."""
        return ids.occurrence_id(self.trigger, self.key(parse_time(slot)))

    def occurrence(self, slot: str, trigger: Trigger) -> Occurrence:
        """The occurrence of a slot.

        Args:
            slot: the slot.
            trigger: the trigger, as the mesh has it now.
        """
        moment = parse_time(slot)
        found = slot_occurrence(self.trigger, trigger, self.schedule, moment)
        started_by = StartedBy(kind="backfill", name=self.id, slot=slot)
        return Occurrence(self.trigger, self.key(moment), found.payload, started_by)

    def following(self, count: int) -> list[str]:
        """The next slots that are neither noted nor counted, oldest first."""
        # The start is a slot that counts, but not the last decided one.
        after = parse_time(self.decided) if self.decided else parse_time(self.first) - _INSTANT
        slots = slots_between(self.schedule, after, parse_time(self.until))
        return [format_time(slot) for slot in islice(slots, count)]


_INSTANT = datetime.resolution


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step.

    Attributes:
        backfill: the state to write before anything starts; the present one if nothing changes.
        to_start: the slots whose tasks start then.
        reads_on: whether the records of further slots are needed to note as many slots as may run.
    """

    backfill: Backfill
    to_start: tuple[str, ...] = field(default=())
    reads_on: bool = False


def advance(
    backfill: Backfill, following: list[str], records: Mapping[str, TaskRecord], now: datetime, *, may_start: bool
) -> Step:
    """Decide one step.

    Args:
        backfill: the present state.
        following: the next slots, as `Backfill.following` gives them; fewer only at the end.
        records: the records of the noted and the following slots by task id; without those that have none.
        now: the time of the step.
        may_start: whether the mesh has the trigger, and it is on.
    """
    counted = _count_paused(_count_ends(backfill, records), records)
    if counted.is_running and counted.stop_at is not None and counted.failed >= counted.stop_at:
        counted = replace(counted, state=states.STOPPED)
    reads_on = False
    if counted.is_running and may_start:
        counted, reads_on = _note(counted, following, records)
    if counted.is_running and not counted.noted and not counted.following(1):
        counted = replace(counted, state=states.DONE)
    if counted != backfill:
        counted = replace(counted, updated_at=format_time(now))
    return Step(counted, _to_start(counted, records) if may_start else (), reads_on)


def _to_start(backfill: Backfill, records: Mapping[str, TaskRecord]) -> tuple[str, ...]:
    """The noted slots to start. A stopped or canceled backfill only finishes the starts under way, whose tasks have a record."""
    slots = [each.slot for each in backfill.noted if not each.is_started]
    if not backfill.is_running:
        slots = [slot for slot in slots if backfill.task_id(slot) in records]
    return tuple(slots)


def with_starts(backfill: Backfill, started: set[str], failed: Mapping[str, str]) -> Backfill:
    """The state after starts.

    Args:
        backfill: the state that notes the slots.
        started: the slots whose tasks were started.
        failed: the problems of the slots that can never start.
    """
    noted, lost = list[NotedSlot](), list[str]()
    for each in backfill.noted:
        if each.slot in failed and not each.is_started:
            lost.append(each.slot)
        else:
            # During a deployment another version may have started what this one could not.
            noted.append(replace(each, is_started=each.is_started or each.slot in started))
    changed = replace(backfill, noted=tuple(noted))
    for slot in lost:
        changed = _failed(changed, slot, failed[slot])
    return changed


def resumed(backfill: Backfill, now: datetime) -> Backfill:
    """The state after `resume`: a stopped backfill goes on, and as many failures are allowed again; others stay."""
    if not backfill.is_stopped:
        return backfill
    stop_at = backfill.failed + backfill.stop_after if backfill.stop_after is not None else None
    return replace(backfill, state=states.RUNNING, stop_at=stop_at, updated_at=format_time(now))


def canceled(backfill: Backfill, now: datetime) -> Backfill:
    """The state after a cancellation: it starts nothing any more; an ended one stays."""
    if backfill.has_ended:
        return backfill
    return replace(backfill, state=states.CANCELED, updated_at=format_time(now))


def _count_ends(backfill: Backfill, records: Mapping[str, TaskRecord]) -> Backfill:
    """The state without the noted slots that have ended."""
    changed = backfill
    for each in backfill.noted:
        record = records.get(backfill.task_id(each.slot))
        if record is None:
            if each.is_started:
                changed = _failed(_without(changed, each), each.slot, "the record of its task has expired")
            elif backfill.is_canceled:
                changed = _without(changed, each)
        elif record.is_terminal:
            changed = _without(changed, each)
            if record.has_succeeded:
                changed = replace(changed, succeeded=changed.succeeded + 1)
            else:
                changed = _failed(changed, each.slot, _problem(record))
    return changed


def _count_paused(backfill: Backfill, records: Mapping[str, TaskRecord]) -> Backfill:
    """The state with the number of paused tasks that give their place back."""
    if backfill.hold_paused:
        return backfill
    found = (records.get(backfill.task_id(each.slot)) for each in backfill.noted)
    count = sum(1 for record in found if record is not None and record.is_paused)
    return replace(backfill, paused=min(count, MOST_PAUSED))


def _without(backfill: Backfill, slot: NotedSlot) -> Backfill:
    return replace(backfill, noted=tuple(each for each in backfill.noted if each.slot != slot.slot))


def _note(backfill: Backfill, following: list[str], records: Mapping[str, TaskRecord]) -> tuple[Backfill, bool]:
    """Note the next slots, up to as many as may run, and count those that have a task; whether there may be more of them."""
    room = backfill.free
    changed, noted = backfill, list[NotedSlot]()
    for slot in following:
        if len(noted) >= room:
            return replace(changed, noted=(*backfill.noted, *noted)), False
        record = records.get(backfill.task_id(slot))
        if record is None or _is_own(record, backfill):
            noted.append(NotedSlot(slot))
            changed = replace(changed, decided=slot)
        else:
            changed = replace(changed, decided=slot, before=changed.before + 1)
    return replace(changed, noted=(*backfill.noted, *noted)), bool(following) and len(noted) < room


def _is_own(record: TaskRecord, backfill: Backfill) -> bool:
    return record.started_by is not None and record.started_by.name == backfill.id


def _failed(backfill: Backfill, slot: str, problem: str) -> Backfill:
    failure = FailedSlot(slot, backfill.task_id(slot), problem[:_PROBLEM_LIMIT])
    return replace(backfill, failed=backfill.failed + 1, failures=(*backfill.failures, failure)[-KEPT_FAILURES:])


_PROBLEM_LIMIT = 200


def _problem(record: TaskRecord) -> str:
    if record.error is not None:
        return f"{record.error.type}: {record.error.message}"
    return record.reason or record.status
