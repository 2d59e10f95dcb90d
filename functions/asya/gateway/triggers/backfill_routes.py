"""Begins, shows, resumes and cancels backfills (`protocol §16.backfill`)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.aws.operator_queue import OperatorQueue
from asya.capabilities.triggers.occurrences import submission_of
from asya.capabilities.triggers.operators.answers import BackfillList, BackfillRequest, BackfillView
from asya.capabilities.triggers.operators.backfill import Backfill, canceled, resumed
from asya.capabilities.triggers.operators.backfill_request import new_backfill
from asya.capabilities.triggers.operators.operator_messages import backfill_message
from asya.capabilities.triggers.operators.views import backfill_view, listed_slots
from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import Request, Response, idempotency_key, required_identity
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.triggers.requests import status_of
from asya.gateway.triggers.trigger_routes import find_trigger
from asya.protocol import ids, names
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.request_bodies import read_body
from asya.protocol.triggers import Trigger
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.tool_schemas import validate

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
        if backfill.state == "canceled":
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
