"""The time of a mesh in memory, and schedules: the slot that a test starts, and the next one."""

from datetime import datetime, timedelta
from itertools import islice

from asya.capabilities.triggers.messages import slot_message
from asya.capabilities.triggers.occurrences import slot_key
from asya.capabilities.triggers.slots import is_slot, slots_after
from asya.protocol import ids, states
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time
from asya.testing.deployment import Deployment
from asya.testing.errors import TestKitError
from asya.testing.run import Run


def slot_start(table: MeshTable, name: str, at: datetime | None, now: datetime) -> tuple[str, str]:
    """The body of the message that starts the task of a slot, and the id of the task.

    Args:
        name: the name of the trigger.
        at: the slot; None for the next one.
        now: the time of the test.

    Raises:
        TestKitError: the mesh has no such trigger, or the time is no slot of it.
    """
    trigger = table.triggers.get(name)
    if trigger is None:
        raise TestKitError(f"the mesh has no trigger {name!r}; it has {', '.join(sorted(table.triggers)) or 'none'}")
    if trigger.schedule is None:
        raise TestKitError(f"the trigger {name!r} has no schedule")
    slot = at or next(slots_after(trigger.schedule, now))
    if not is_slot(trigger.schedule, slot):
        following = ", ".join(map(format_time, islice(slots_after(trigger.schedule, slot), 2)))
        raise TestKitError(f"{format_time(slot)} is no slot of the trigger {name!r}; the next ones are {following}")
    return slot_message(name, slot).decode(), ids.occurrence_id(name, slot_key(slot))


def seconds_to_slot(table: MeshTable, now: datetime) -> float | None:
    """Seconds to the next slot of the mesh; None without a schedule."""
    schedules = [each.schedule for each in table.triggers.values() if each.schedule is not None and each.enabled]
    slots = [next(slots_after(schedule, now)) for schedule in schedules]
    return (min(slots) - now).total_seconds() if slots else None


_MINUTE = 60.0
# How long a call of a test waits for scheduled functions, such as the one that reports dead letters.
_PATIENCE = timedelta(minutes=15)
# The scheduled functions run every minute for this long, and this many times in the rest of a journey.
_MINUTELY = 10
_TICKS = 40


class VirtualTime:
    """Lets a mesh work, and time pass. Time stands still while a handler runs.

    Raises:
        TestKitError: from each method: a function of the mesh raised, which should never happen.
    """

    def __init__(self, cloud: Deployment) -> None:
        self._cloud = cloud

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return self._cloud.simulation.scheduler.now

    def settle(self, run: Run) -> None:
        """Let the mesh work until it is at rest, and for a while longer if the run has not ended by then."""
        self._cloud.run_until_idle()
        end = self.now + _PATIENCE
        while self._is_open(run) and not _waits_beyond(run, end) and self.now < end:
            self._cloud.advance(_MINUTE)
            self._tick()
            self._cloud.run_until_idle()

    def travel(self, time: timedelta) -> None:
        """Let time pass, as `Mesh.travel` says."""
        span = time.total_seconds()
        scheduler = self._cloud.simulation.scheduler
        end = scheduler.seconds + span
        while scheduler.seconds < end:
            done = span - (end - scheduler.seconds)
            step = _MINUTE if done < _MINUTELY * _MINUTE else max(_MINUTE, span / _TICKS)
            self._cloud.advance(
                min(step, end - scheduler.seconds, seconds_to_slot(self._cloud.table, self.now) or step)
            )
            self._tick()
        self._cloud.run_until_idle()

    def _tick(self) -> None:
        """Run the scheduled functions."""
        with self._cloud.activate():
            self._cloud.system.wake_all()
            scheduler = self._cloud.simulation.scheduler
            scheduler.run(lambda: scheduler.at_work == 0)

    def _is_open(self, run: Run) -> bool:
        status, sent = run.status, self._cloud.history.sent.get(run.id, [])
        is_stealth = bool(sent) and sent[0].envelope.is_stealth  # it has no task
        return status in states.ACTIVE or (status == states.UNKNOWN and not is_stealth)


def _waits_beyond(run: Run, end: datetime) -> bool:
    """Whether nothing happens to a run for long, because it waits for a time."""
    until = run.waiting_until
    return until is not None and until > end
