"""Calls of operators: show, pause, resume and fire triggers; begin, show, resume and cancel backfills (`§16`)."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.queue_senders import OperatorQueue
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.http_calls import TAKE_WEBHOOK
from asya.capabilities.triggers.lanes import only_lane
from asya.capabilities.triggers.messages import slot_message
from asya.capabilities.triggers.occurrences import Occurrence, owner_of, slot_occurrence, submission_of
from asya.capabilities.triggers.operators.answers import (
    BackfillList,
    BackfillRequest,
    BackfillView,
    Fired,
    FireRequest,
    SlotView,
    TriggerList,
    TriggerView,
)
from asya.capabilities.triggers.operators.backfill import Backfill, canceled, resumed
from asya.capabilities.triggers.operators.operator_messages import backfill_message, fire_message, fired_occurrence
from asya.capabilities.triggers.operators.requests import new_backfill, read_moment, startable
from asya.capabilities.triggers.operators.views import backfill_view, lane_view, last_slots, listed_slots, trigger_view
from asya.capabilities.triggers.slots import is_slot, last_slot, slots_after
from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import Request, Response, idempotency_key, required_identity
from asya.gateway.routes.cancel import CancelRoutes
from asya.protocol import ids, names
from asya.protocol.api_errors import ApiError, read_body
from asya.protocol.mesh_table import MeshTable
from asya.protocol.states import ViewStatus
from asya.protocol.triggers import Schedule, Trigger
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery
from asya.tasks.starts.tool_schemas import validate


def status_of(tasks: Tasks, task_id: str, now: datetime) -> ViewStatus | None:
    """The status of a task; None without a record."""
    task = tasks.read(task_id, now)
    return task.status if task is not None else None


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
        kept, slots = self.states.read_all(), self._last_slots(self.mesh.triggers, now)
        views = [
            trigger_view(name, trigger, kept.get(name), slots.get(name), now)
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
        return replace(view, url=self.gateway + TAKE_WEBHOOK.path.format(name=view.name))

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


_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class BackfillRoutes:
    """The calls about backfills. `x-triggers` starts the tasks.

    Attributes:
        cancels: cancels tasks.
        queue: the queue of what triggers react to.
        new_id: creates the id of a backfill without an idempotency key.
    """

    mesh: MeshTable
    access: AccessRules
    backfills: Backfills
    tasks: Tasks
    cancels: CancelRoutes
    queue: OperatorQueue
    new_id: Callable[[], str]

    def all(self, _request: Request, now: datetime) -> Response:
        """`GET /api/v1/backfills`: all backfills, the newest first."""
        views = [backfill_view(each, {}, self._trigger_of(each)) for each in self.backfills.read_all(now)]
        return Response(200, BackfillList(items=views))

    def begin(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/backfills`: 201 with the backfill, which goes on by itself. 200 for a dry run."""
        caller = self.access.caller(required_identity(request))
        wanted = read_body(request.text, BackfillRequest)
        trigger = find_trigger(wanted.trigger, self.mesh)
        backfill = new_backfill(wanted, trigger, self._id(request, caller), caller.principal, now)
        (first,) = backfill.following(1)
        # What would fail for every slot is refused here, where somebody waits for the answer.
        submission_of(trigger, backfill.occurrence(first, trigger).payload, self.mesh, validate)
        if wanted.dry_run:
            return Response(200, self._view(backfill, now))
        if not self.backfills.create(backfill, now):
            backfill = self._same(backfill)
        self._wake(backfill)
        return Response(201, self._view(backfill, now))

    def show(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/backfills/{id}`: a backfill with its running tasks and its newest failures."""
        return Response(200, self._view(self._read(request.parameters["id"]), now))

    def resume(self, request: Request, now: datetime) -> Response:
        """`POST …/resume`: a stopped backfill goes on."""
        backfill = self._changed(request.parameters["id"], resumed, now)
        self._wake(backfill)
        return Response(200, self._view(backfill, now))

    def cancel(self, request: Request, now: datetime) -> Response:
        """`DELETE /api/v1/backfills/{id}`: it starts nothing any more, and its running tasks are canceled.

        A repeated call cancels what the first one has left.
        """
        caller = self.access.caller(required_identity(request))
        backfill = self._changed(request.parameters["id"], canceled, now)
        if backfill.is_canceled:
            self._cancel_tasks(backfill, caller, now)
            self._wake(backfill)
        return Response(200, self._view(backfill, now))

    def _cancel_tasks(self, backfill: Backfill, caller: Caller, now: datetime) -> None:
        for each in backfill.noted:
            try:
                self.cancels.cancel(backfill.task_id(each.slot), caller, now)
            except ApiError as error:
                if error.status != 404:  # its task has not started
                    raise

    def _id(self, request: Request, caller: Caller) -> str:
        key = idempotency_key(request, caller.principal, "")
        return ids.backfill_id(caller.principal, key.text) if key is not None else self.new_id()

    def _same(self, wanted: Backfill) -> Backfill:
        """The backfill that an earlier call with the key began.

        Raises:
            ApiError: 409 if that call asked for another one.
        """
        found = self._read(wanted.id)
        asked = ("trigger", "first", "at_once", "stop_after", "again", "hold_paused")
        # Both leave out the slots after their own call.
        until = min(wanted.until, found.created_at)
        if until != found.until or any(getattr(found, name) != getattr(wanted, name) for name in asked):
            problem = "this Idempotency-Key was used for a different backfill; use a new key"
            raise ApiError(409, "idempotency_mismatch", problem, "Idempotency-Key")
        return found

    def _read(self, backfill_id: str) -> Backfill:
        stored = self.backfills.read(backfill_id)
        if stored is None:
            raise _unknown(backfill_id)
        return stored.backfill

    def _changed(self, backfill_id: str, change: Callable[[Backfill, datetime], Backfill], now: datetime) -> Backfill:
        """Change a backfill, whatever steps it takes meanwhile."""
        for _ in range(_ATTEMPTS):
            stored = self.backfills.read(backfill_id)
            if stored is None:
                raise _unknown(backfill_id)
            backfill = change(stored.backfill, now)
            if backfill == stored.backfill or self.backfills.replace(stored, backfill, now) is not None:
                return backfill
        raise TaskStoreError(f"the backfill {backfill_id} did not change: {_ATTEMPTS} attempts met concurrent writes")

    def _wake(self, backfill: Backfill) -> None:
        """Let the backfill take a step now. Without the message, it takes it with the next sweep."""
        if backfill.is_open:
            with suppress(ApiError):
                self.queue.send(backfill_message(backfill.id))

    def _view(self, backfill: Backfill, now: datetime) -> BackfillView:
        task_ids = [backfill.task_id(each.slot) for each in listed_slots(backfill)]
        statuses = {task_id: status_of(self.tasks, task_id, now) for task_id in task_ids}
        return backfill_view(backfill, statuses, self._trigger_of(backfill))

    def _trigger_of(self, backfill: Backfill) -> Trigger | None:
        return self.mesh.triggers.get(backfill.trigger)


def _unknown(backfill_id: str) -> ApiError:
    return ApiError(404, "not_found", f"there is no backfill {backfill_id[: names.LABEL_LIMIT]!r}", "id")
