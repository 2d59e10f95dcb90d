"""Sends the slots that are due to `x-triggers`, every minute (`protocol §16.due`).

The slots are sent first and noted second. A process that dies between the two sends them again, and their keys start each
task once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.aws.slot_sender import SlotSender
from asya.capabilities.triggers.due_slots import decide
from asya.capabilities.triggers.schedule_state import ScheduleState
from asya.function.aws.settings import Settings
from asya.protocol.times import format_time
from asya.protocol.triggers import Schedule, Trigger
from asya.tasks.aws.task_store import TaskStoreError


class SweepServices(Protocol):
    """What the sweep needs of the services of a function."""

    @property
    def settings(self) -> Settings:
        """The settings of the function."""

    @property
    def telemetry(self) -> Any:
        """Its log and its metrics."""

    def now(self) -> datetime:
        """The current time."""


@dataclass(frozen=True, slots=True)
class SlotSweep:
    """Decides the slots of all schedules of the mesh."""

    services: SweepServices
    states: ScheduleStates
    slots: SlotSender

    def sweep(self, now: datetime | None = None) -> None:
        """Decide the slots up to now. A failure at one trigger leaves the others alone, and the next sweep repeats it.

        Args:
            now: the time in the place of the clock's; a local cloud decides slots before their time.

        Raises:
            TaskStoreError: the states cannot be read, or those of removed schedules cannot be written.
            Exception: an unexpected error at a trigger, after the slots of the others.
        """
        triggers = self.services.settings.table.triggers
        schedules = {name: (each, each.schedule) for name, each in triggers.items() if each.schedule is not None}
        states, unexpected = self.states.read_all(), list[Exception]()
        for name, (trigger, schedule) in schedules.items():
            try:
                self._decide(name, trigger, schedule, states.get(name), now or self.services.now())
            except (TaskStoreError, ClientError, BotoCoreError):
                self.services.telemetry.log.exception("the slots of a trigger wait", trigger=name)
            except Exception as error:  # noqa: BLE001 - it is raised below
                unexpected.append(error)
        self.services.telemetry.flush()
        self._turn_off({name: state for name, state in states.items() if name not in schedules})
        if unexpected:
            raise unexpected[0]

    def _turn_off(self, removed: Mapping[str, ScheduleState]) -> None:
        """Note which schedules the mesh does not have any more: they begin anew if it has them again."""
        for name, state in removed.items():
            # A trigger of another source has a state too, once it was paused.
            if state.schedule and not state.off:
                self.states.write(name, replace(state, off=True), state)

    def _decide(
        self, name: str, trigger: Trigger, schedule: Schedule, seen: ScheduleState | None, now: datetime
    ) -> None:
        telemetry = self.services.telemetry
        decision = decide(trigger, schedule, seen, now)
        self.slots.send(name, decision.due)
        if decision.state != seen and not self.states.write(name, decision.state, seen):
            # Another sweep or an operator was faster. The keys of the slots start each task once.
            return
        if decision.missed_between is not None:
            telemetry.count("SlotsMissed", decision.missed)
            first, last = map(format_time, decision.missed_between)
            # A backfill starts them.
            details = {"count": decision.missed, "first": first, "last": last, "catch_up": schedule.catch_up}
            telemetry.log.error("slots missed", trigger=name, **details)
        if decision.due:
            telemetry.log.info("slots due", trigger=name, slots=[format_time(slot) for slot in decision.due])
