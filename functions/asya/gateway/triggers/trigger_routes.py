"""Shows, pauses, resumes and fires triggers (`protocol §16`, calls of operators)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.operator_queue import OperatorQueue
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.http_calls import WEBHOOK_PATH
from asya.capabilities.triggers.lanes import only_lane
from asya.capabilities.triggers.messages import slot_message
from asya.capabilities.triggers.occurrences import Occurrence, owner_of, slot_occurrence, submission_of
from asya.capabilities.triggers.operators.answers import Fired, FireRequest, SlotView, TriggerList, TriggerView
from asya.capabilities.triggers.operators.backfill_request import startable
from asya.capabilities.triggers.operators.local_times import read_moment
from asya.capabilities.triggers.operators.operator_messages import fire_message, fired_occurrence
from asya.capabilities.triggers.operators.views import lane_view, last_slots, trigger_view
from asya.capabilities.triggers.slots import is_slot, last_slot, slots_after
from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, Response, idempotency_key, required_identity
from asya.gateway.triggers.requests import status_of
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.request_bodies import read_body
from asya.protocol.triggers import Schedule, Trigger
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery
from asya.tasks.starts.tool_schemas import validate

_TASKS = 10


@dataclass(frozen=True, slots=True)
class TriggerRoutes:
    """The calls about triggers.

    Attributes:
        queue: the queue of what triggers react to.
        new_id: creates the name of a call without an idempotency key.
        gateway: the base URL of the gateway, which webhooks call.
    """

    mesh: MeshTable
    access: AccessRules
    states: ScheduleStates
    lanes: LaneStore
    tasks: Tasks
    lists: TaskLists
    queue: OperatorQueue
    new_id: Callable[[], str]
    gateway: str | None

    def all(self, _request: Request, now: datetime) -> Response:
        """`GET /api/v1/triggers`: all triggers by name."""
        states, slots = self.states.read_all(), self._last_slots(self.mesh.triggers, now)
        views = [
            trigger_view(name, trigger, states.get(name), slots.get(name), now)
            for name, trigger in sorted(self.mesh.triggers.items())
        ]
        return Response(200, TriggerList(items=list(map(self._with_url, views))))

    def show(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/triggers/{trigger}`: one trigger with its newest tasks, and what waits in its lane."""
        name, trigger = self._trigger(request)
        page = self.lists.page(ListQuery("tasks", limit=_TASKS), owner_of(name), now)
        key = only_lane(name, trigger)
        lane = lane_view(self.lanes.read(key).lane) if key is not None else None
        return Response(200, replace(self._view(name, now), tasks=page.tasks, lane=lane))

    def pause(self, request: Request, now: datetime) -> Response:
        """`POST …/pause`: the trigger starts nothing by itself."""
        name, _ = self._trigger(request)
        self.states.pause(name, now)
        return Response(200, self._view(name, now))

    def resume(self, request: Request, now: datetime) -> Response:
        """`POST …/resume`: a paused trigger goes on; its schedule begins now."""
        name, _ = self._trigger(request)
        self.states.resume(name, now)
        return Response(200, self._view(name, now))

    def fire(self, request: Request, now: datetime) -> Response:
        """`POST …/fire`: start the task of a slot, or one for now; 202 with its id."""
        name, trigger = self._trigger(request)
        schedule = startable(name, trigger)
        at = read_body(request.text, FireRequest).at
        if at is not None:
            slot = read_slot(schedule, at, now)
            occurrence, message = slot_occurrence(name, trigger, schedule, slot), slot_message(name, slot)
        else:
            fired = self._name_of(request)
            occurrence = fired_occurrence(name, trigger, schedule, fired, now)
            message = fire_message(name, fired, now)
        self._check(occurrence, trigger)
        self.queue.send(message)
        return Response(202, Fired(id=occurrence.task_id))

    def _check(self, occurrence: Occurrence, trigger: Trigger) -> None:
        """Check that the payload fits; `x-triggers` would refuse it later, when nobody waits for an answer."""
        submission_of(trigger, occurrence.payload, self.mesh, validate)

    def _name_of(self, request: Request) -> str:
        """The name of a call without a slot: that of the idempotency key, which belongs to its caller."""
        principal = self.access.caller(required_identity(request)).principal
        key = idempotency_key(request, principal, "")
        return hashlib.sha256(f"{principal}\n{key.text}".encode()).hexdigest() if key is not None else self.new_id()

    def _trigger(self, request: Request) -> tuple[str, Trigger]:
        name = request.parameters["trigger"]
        return name, find_trigger(name, self.mesh)

    def _view(self, name: str, now: datetime) -> TriggerView:
        trigger = self.mesh.triggers[name]
        slots = self._last_slots({name: trigger}, now)
        return self._with_url(trigger_view(name, trigger, self.states.read_all().get(name), slots.get(name), now))

    def _with_url(self, view: TriggerView) -> TriggerView:
        if view.kind != "webhook" or self.gateway is None:
            return view
        return replace(view, url=self.gateway + WEBHOOK_PATH.format(name=view.name))

    def _last_slots(self, triggers: dict[str, Trigger], now: datetime) -> dict[str, SlotView]:
        slots = last_slots(triggers, now)
        statuses = {slot.id: status_of(self.tasks, slot.id, now) for slot in slots.values()}
        return {name: replace(slot, status=statuses[slot.id]) for name, slot in slots.items()}


def find_trigger(name: str, mesh: MeshTable) -> Trigger:
    """Find a trigger by its name.

    Raises:
        ApiError: 404 for an unknown trigger.
    """
    trigger = mesh.triggers.get(name)
    if trigger is None:
        known = ", ".join(sorted(mesh.triggers)) or "none"
        problem = f"there is no trigger {name[: names.LABEL_LIMIT]!r}; the triggers are: {known}"
        raise ApiError(404, "unknown_trigger", problem, "trigger")
    return trigger


def read_slot(schedule: Schedule, text: str, now: datetime) -> datetime:
    """Read a slot of a schedule: a time, or a local time in its zone.

    Raises:
        ApiError: 400 if it is no slot, or in the future.
    """
    try:
        moment = read_moment(text, schedule.timezone)
    except ValueError as error:
        raise ApiError(400, "invalid_field", f"at {error}", "at") from None
    if moment > now:
        raise ApiError(400, "invalid_field", f"at is {text}, which is in the future", "at")
    if not is_slot(schedule, moment):
        before, after = last_slot(schedule, moment), next(slots_after(schedule, moment), None)
        near = " and ".join(
            slot.astimezone(ZoneInfo(schedule.timezone)).isoformat() for slot in (before, after) if slot is not None
        )
        problem = f"at is {text}, which is no slot of {schedule.cron!r} in {schedule.timezone}; the slots around it are {near}"
        raise ApiError(400, "invalid_field", problem, "at")
    return moment
