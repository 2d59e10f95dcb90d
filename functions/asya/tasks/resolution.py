"""Decides what became of a failed task, from its record and from the records of its replays (`protocol §13.resolution`).

The record of the replayed task names its replay, and the state of the replay is that of its own record. So no end of a replay has
to be written twice, and a process that dies between two writes leaves nothing that is wrong.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from asya.protocol import ids
from asya.protocol.task import Resolution, TaskRecord
from asya.protocol.triggers import OWNER_PREFIX, SLOT_KEY
from asya.tasks.view import fail_if_overdue

DEPTH = 8
"""Replays of replays, and sets within sets, that are followed."""


Records = Mapping[str, TaskRecord]
ReadRecords = Callable[[Collection[str]], Records]


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a task.

    Attributes:
        resolution: what a reader sees.
        goes_on: the failed replay in whose record the open failure goes on; None if it does not go on elsewhere.
    """

    resolution: Resolution
    goes_on: TaskRecord | None = None


def related_ids(record: TaskRecord) -> Iterable[str]:
    """The ids of the tasks that may decide what became of a task."""
    if record.replayed is not None:
        yield record.replayed.id
    yield from record.overtaken
    if record.has_ended_badly and (replayed := _replay_of(record)) is not None:
        yield replayed
    if not record.has_failed:
        return
    if (slot_task := _task_of_slot(record)) is not None:
        yield slot_task
    if record.set_id is not None and record.parent_id is not None:
        yield record.parent_id


def related(records: Iterable[TaskRecord], read: ReadRecords, now: datetime) -> dict[str, TaskRecord]:
    """Read the records that decide what became of some tasks, a few levels deep.

    Args:
        records: the records of the tasks.
        read: reads records by ids.
        now: the time for the deadline check.
    """
    known: dict[str, TaskRecord] = {}
    asked: set[str] = set()
    front = [fail_if_overdue(record, now) for record in records]
    for _ in range(DEPTH):
        wanted = {each for record in front for each in related_ids(record)} - asked
        if not wanted:
            break
        asked |= wanted
        front = [fail_if_overdue(record, now) for record in read(wanted).values()]
        known |= {record.id: record for record in front}
    return known


def settled(record: TaskRecord, known: Records, now: datetime) -> Settled | None:
    """What became of a failed task, or of any task that was replayed; None for the others, and for an open failure.

    Args:
        record: the record of the task, or its summary.
        known: the records of `related`.
        now: the time for the deadline check.
    """
    return _settled(fail_if_overdue(record, now), known, DEPTH)


def is_open(found: Settled | None, owner: str | None) -> bool:
    """Whether a list of open failures has a failed task: not if it is settled, or if the list has its failed replay.

    Args:
        found: what became of the task.
        owner: the owner whose tasks are listed; None for those of all owners.
    """
    if found is None:
        return True
    if found.goes_on is None:
        return found.resolution.is_open
    return owner is not None and found.goes_on.owner != owner


def _settled(record: TaskRecord, known: Records, depth: int) -> Settled | None:
    if depth == 0:
        return None
    if record.has_failed and record.dismissed is not None:
        return _dismissed(record)
    found = _by_its_replay(record, known, depth)
    if found is None or found.resolution.is_open:
        found = _by_replay_of_the_replayed(record, known, depth) or found
    if found is not None:
        return found
    if not record.has_failed:
        return None
    return _by_other_start(record, known) or _by_its_set(record, known, depth)


def _dismissed(record: TaskRecord) -> Settled | None:
    if record.dismissed is None:
        return None
    by = record.dismissed
    return Settled(Resolution(how="dismissed", at=by.at, by=by.by, reason=by.reason))


def _by_its_replay(record: TaskRecord, known: Records, depth: int) -> Settled | None:
    """What became of a task by its own replay, or by those of the replay."""
    link = record.replayed
    replay = known.get(link.id) if link is not None else None
    if link is None or replay is None:  # the process died before it started the replay
        return None
    here = Resolution(how="replayed", at=link.at, by=link.by, task=replay.id, status=replay.status)
    if replay.has_ended_badly:
        further = _settled(replay, known, depth - 1)
        goes_on = replay if replay.has_failed else None
        if further is None:
            return Settled(replace(here, is_open=True), goes_on)
        is_open_here = further.resolution.is_open and further.goes_on is None
        return Settled(further.resolution, goes_on) if is_open_here else further
    is_unsent = replay.is_pending and link.lease_until is not None
    return Settled(replace(here, is_open=is_unsent))


def _by_other_start(record: TaskRecord, known: Records) -> Settled | None:
    """Another task of the same slot, or with the same key, has succeeded after the failure."""
    first = known.get(_task_of_slot(record) or "")
    others = (*record.overtaken, *((first.id, *first.overtaken) if first is not None else ()))
    for other in filter(None, map(known.get, others)):
        if other.has_succeeded and other.updated_at > record.updated_at:
            return _overtaken(other)
    return None


def _by_replay_of_the_replayed(record: TaskRecord, known: Records, depth: int) -> Settled | None:
    """A failed or canceled replay whose task was dismissed, was replayed once more, or runs again."""
    first = known.get(_replay_of(record) or "") if record.has_ended_badly else None
    if first is None or depth == 0:
        return None
    if first.has_failed and first.dismissed is not None:
        return _dismissed(first)
    if first.replayed is None:
        return _overtaken(first) if not first.has_ended_badly else None
    if first.replayed.id == record.id:
        return _by_replay_of_the_replayed(first, known, depth - 1)
    later = known.get(first.replayed.id)
    return _overtaken(later) if later is not None else None


def _by_its_set(record: TaskRecord, known: Records, depth: int) -> Settled | None:
    """A failed slice is settled with its set: its origin has succeeded without it, was replayed or dismissed."""
    origin = known.get(record.parent_id or "") if record.set_id is not None else None
    if origin is None:
        return None
    if origin.has_succeeded:
        return _overtaken(origin)
    return _settled(origin, known, depth - 1) if origin.has_failed else None


def _overtaken(by: TaskRecord) -> Settled:
    return Settled(Resolution(how="overtaken", task=by.id, status=by.status))


def _replay_of(record: TaskRecord) -> str | None:
    origin = record.started_by
    return origin.name if origin is not None and origin.kind == "replay" else None


def _task_of_slot(record: TaskRecord) -> str | None:
    """The id of the task with which the slot of a later one started first; None for a task that is no later one of a slot."""
    origin, owner = record.started_by, record.owner or ""
    if origin is None or origin.slot is None or not owner.startswith(OWNER_PREFIX):
        return None
    first = ids.occurrence_id(owner.removeprefix(OWNER_PREFIX), f"{SLOT_KEY}{origin.slot}")
    return first if first != record.id else None
