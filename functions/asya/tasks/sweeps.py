"""Which minutes the deadline sweep has left, and which tasks are probably lost (`protocol §13`, `§13.lost`).

Pure: the sweep of lost tasks reads records and hops, and passes them in.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from shlex import quote

from asya.function.sqs import QUEUE_RETENTION_DAYS
from asya.protocol import states
from asya.protocol.errors import TaskProblem
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.hops import HopFold
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time, parse_time

# The last minutes are read again, because index entries and records may arrive late.
REREAD_WINDOW = timedelta(minutes=3)
# The first sweep of a mesh starts this far back.
INITIAL_WINDOW = timedelta(minutes=30)


def unswept_minutes(mark: datetime | None, until: datetime) -> Iterator[datetime]:
    """The minutes whose deadlines may have passed without an end in the record, oldest first.

    Args:
        mark: the first minute that no sweep has finished; None before the first sweep.
        until: the end of the last minute.
    """
    start = min(mark or until - INITIAL_WINDOW, until - REREAD_WINDOW)
    minute = start.replace(second=0, microsecond=0)
    while minute <= until:
        yield minute
        minute += timedelta(minutes=1)


LOST = "EnvelopeLost"
"""The type of the problem of a task whose envelope nothing in the mesh can still hold."""

# A queue keeps a message for so long. A received one may be hidden for half a day, and its reports may be on their way.
_QUEUE = timedelta(days=QUEUE_RETENTION_DAYS + 1)
# A pending envelope waits for a run as long as its claim lives.
PENDING = timedelta(days=15)


def silent_since(record: TaskRecord, hops: HopFold) -> str:
    """When something was heard of a task for the last time, or until when its envelope waits on purpose."""
    retry = record.retry
    times = [record.updated_at, hops.last_at, record.waiting_until or ""]
    if retry is not None and retry.generation == record.generation:
        times += [retry.at, retry.next_at]
    return max(times)


def longest_silence(record: TaskRecord, hops: HopFold, mesh: MeshTable) -> timedelta:
    """How long the place of an envelope may hold it without a report: the actor at work, its queue, or the next one."""
    route, latest = hops.route(record.route), hops.latest
    names = [latest.actor] if latest is not None else []
    if route is not None:
        names += [route.curr, *route.next[:1]]
    actors = [mesh.actors.get(name) for name in names if name]
    if not actors or None in actors:
        actors = list(mesh.actors.values())  # an override may have sent it anywhere
    life = timedelta(seconds=mesh.retention.tasks)
    # A task that would be found after its record has expired is found by nobody.
    return min(_QUEUE + max(map(_hold, (each for each in actors if each is not None)), default=timedelta()), life * 0.9)


def shortest_silence(mesh: MeshTable) -> timedelta:
    """No task is lost before it is as old as this."""
    return min(_QUEUE, timedelta(seconds=mesh.retention.tasks) * 0.9)


def lost_report(record: TaskRecord, hops: HopFold, mesh: MeshTable) -> TaskEvent:
    """Report that the envelope of a task is probably lost, at the place where it was seen last.

    Its time is that of the last report: a later one, however late it arrives, clears the problem.
    """
    since, latest = silent_since(record, hops), hops.latest
    route = hops.route(record.route)
    actor = latest.actor if latest is not None else record.actor or (route.curr if route is not None else "")
    days = longest_silence(record, hops, mesh).total_seconds() / 86_400
    message = (
        f"nothing was heard of this envelope at {actor} since {since}, and nothing in the mesh holds one for over {days:.3g} days "
        f"there; its message may have expired, or x-sump has it under another id. Search the lines of x-sump for {record.id!r}, "
        f"then cancel the task, or start it again with `asya replay {quote(record.id)}`. If the envelope turns up, the task goes on"
    )
    at = format_time(parse_time(since) + timedelta(microseconds=1))
    return TaskEvent(
        id=record.id,
        status=states.PROCESSING,
        at=at,
        generation=record.generation,
        position=latest.position if latest is not None else 0,
        attempt=latest.attempt if latest is not None else record.attempt or 1,
        data=EventData(
            actor=actor,
            route=route,
            attempt=latest.attempt if latest is not None else record.attempt or 1,
            problem=TaskProblem(LOST, message),
        ),
    )


def is_lost(record: TaskRecord, hops: HopFold, mesh: MeshTable, now: datetime) -> bool:
    """Whether a task is lost, and does not say so yet. A paused task waits for somebody, and an ended one for nothing."""
    if record.is_at_rest or (hops.problem is not None and hops.problem.type == LOST):
        return False
    return parse_time(silent_since(record, hops)) + longest_silence(record, hops, mesh) < now


def _hold(actor: Actor) -> timedelta:
    """How long an actor may keep an envelope beyond the queue; a wait is on record."""
    if actor.kind == "spark":
        return PENDING + timedelta(seconds=actor.spark.max_run if actor.spark is not None else 0)
    if actor.kind == "fan_in" and actor.fan_in is not None:
        return timedelta(seconds=max(actor.fan_in.ttl, actor.fan_in.timeout or 0))
    return timedelta()
