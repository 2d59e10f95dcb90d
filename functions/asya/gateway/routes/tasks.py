"""Starts, lists and shows tasks, with timelines, sets and kept payloads (`protocol §13`)."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.fan_in.set_view import SetView, TaskSet, set_places, set_view
from asya.capabilities.operations.aws.kept_payloads import KeptPayloads
from asya.capabilities.operations.payloads import (
    Copies,
    Copy,
    HopPayloads,
    KeptHops,
    PayloadText,
    kept_hops,
    read_hop,
)
from asya.function.aws.outage_notes import OutageNotes, words_about_now
from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, required_identity
from asya.gateway.http.visible_tasks import check_owner, unknown_task, visible_task
from asya.gateway.start_rights import check_start
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Route
from asya.protocol.errors import TaskProblem
from asya.protocol.hops import HopKey
from asya.protocol.ids import is_usable
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import parse_time
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.task_store import table_errors
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery, TaskList, Timeline, read_list_query
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.submission import first_message, is_stealth, read_submission
from asya.tasks.view import TaskView

HOPS_LIMIT = 500


@dataclass(frozen=True, slots=True)
class ListRoutes:
    """Lists tasks, children and hops."""

    tasks: Tasks
    lists: TaskLists
    access: AccessRules

    def all(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh`: the caller's tasks, or all tasks for operators; `parent` selects the children of a task."""
        caller = self.access.caller(required_identity(request))
        query = read_list_query(request.query, "tasks", (str, str))
        check_owner(query, caller)
        return self._page(query, caller, now)

    def children(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}/children`: the children of a task."""
        task, caller = self._visible(request, now)
        parameters = {
            name: value for name, value in request.query.items() if name in ("status", "resolved", "limit", "cursor")
        }
        return self._page(read_list_query(parameters | {"parent": task.id}, "tasks", (str, str)), caller, now)

    def timeline(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}/timeline`: a task's hops of all generations, with their times."""
        task, _ = self._visible(request, now)
        parameters = {name: value for name, value in request.query.items() if name in ("limit", "cursor")}
        query = read_list_query(parameters, f"timeline {task.id}", (int, int, int), HOPS_LIMIT)
        after = HopKey(*map(int, query.after)) if query.after else None
        limit = query.limit if "limit" in parameters else HOPS_LIMIT
        page = self.lists.timeline(task.id, after, limit, now)
        return Response(200, Timeline(items=page.hops, next_cursor=query.cursor(page.next) if page.next else None))

    def _page(self, query: ListQuery, caller: Caller, now: datetime) -> Response:
        page = self.lists.page(query, caller.owner_filter, now)
        cursor = query.cursor(page.next) if page.next else None
        return Response(200, TaskList(items=page.tasks, resolved=page.resolved, next_cursor=cursor))

    def _visible(self, request: Request, now: datetime) -> tuple[TaskView, Caller]:
        caller = self.access.caller(required_identity(request))
        return visible_task(self.tasks, request.parameters["id"], caller, now), caller


OUTAGE = "Outage"
"""The type of the problem of a task that an outage may keep waiting."""

# A task that has just reported is not kept waiting, and costs no read of the notes.
_QUIET = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class TaskRoutes:
    """Starts tasks and reads their records.

    Attributes:
        new_id: creates the id of a task.
        outages: the notes of outages.
        warn: logs that the notes cannot be read.
    """

    mesh: MeshTable
    tasks: Tasks
    starter: TaskStarter
    access: AccessRules
    origins: Origins
    new_id: Callable[[], str]
    outages: OutageNotes
    warn: Callable[..., None]

    def start(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh?actor=A`: 201 with the id of the new task."""
        caller = self.access.caller(required_identity(request))
        check_size(request, self.mesh.gateway.max_body)
        submission = read_submission(request.text, request.query.get("actor"), self.mesh)
        check_start(submission, caller, self.mesh)
        compose = first_message(submission, self.origins.of(request), self.mesh)
        # A repetition must have the same actor and the same bytes as its body.
        digest = hashlib.sha256(submission.actor.encode() + b"\n" + request.body).hexdigest()
        key = idempotency_key(request, caller.principal, digest)
        if key is None:
            task_id = self.starter.start(compose, caller.principal, self.new_id(), now)
        else:
            task_id = self.starter.start_once(compose, key, self.new_id(), now)
        content = {"id": task_id, "tracked": False} if is_stealth(submission) else {"id": task_id}
        return Response(201, content)

    def task(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}`: the task; 404 also for a task of another owner."""
        caller = self.access.caller(required_identity(request))
        return Response(200, self._with_outage(visible_task(self.tasks, request.parameters["id"], caller, now), now))

    def _with_outage(self, task: TaskView, now: datetime) -> TaskView:
        """The task whose problem is the outage that may keep it waiting, unless it has one (`protocol §4.outage.shown`)."""
        since = parse_time(task.updated_at)
        is_held = task.problem is not None or task.waiting_until is not None
        if not task.is_active or is_held or now - since < _QUIET:
            return task
        try:
            words = words_about_now(self.outages.read(), since, now)
        except (ClientError, BotoCoreError) as error:
            self.warn("notes of outages not read", exc_info=error)
            return task
        return replace(task, problem=TaskProblem(OUTAGE, words)) if words else task


@dataclass(frozen=True, slots=True)
class TaskSetRoutes:
    """Reads the set of a task.

    Attributes:
        sets: None if the mesh has no fan-in actor.
    """

    mesh: MeshTable
    tasks: Tasks
    access: AccessRules
    sets: FanInSets | None

    def of_task(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}/set`: the set that a task waits for, with the slices that are missing."""
        caller = self.access.caller(required_identity(request))
        task = visible_task(self.tasks, request.parameters["id"], caller, now)
        return Response(200, TaskSet(set=self._set(task)))

    def _set(self, task: TaskView) -> SetView | None:
        if self.sets is None:
            return None
        for place in set_places(task, self.mesh):
            with table_errors(f"read the set {place.set_id}"):
                record = self.sets.get(place.set_id)
            if record is not None:
                return set_view(place, record.state)
        return None


@dataclass(frozen=True, slots=True)
class PayloadRoutes:
    """Lists and reads the kept payloads of tasks."""

    tasks: Tasks
    access: AccessRules
    payloads: KeptPayloads

    def list(self, request: Request, now: datetime) -> Response:
        """`GET …/{id}/payloads`: the hops of a task with kept payloads."""
        with _available(request.parameters["id"]):
            copies, route = self._find(request, now)
        return Response(200, KeptHops(items=kept_hops(copies, route)))

    def hop(self, request: Request, now: datetime) -> Response:
        """`GET …/{id}/payloads/{hop}`: the payloads before and after one hop."""
        with _available(request.parameters["id"]):
            copies, route = self._find(request, now)
            hop = read_hop(request.parameters["hop"], copies)
            before, after = copies.before.get(hop), copies.after(hop)
            named = before or after
            content = HopPayloads(
                hop=hop,
                actor=copies.actor_at(hop, route),
                generation=(named.generation if named else None) or 0,
                before=self._read(before),
                after=self._read(after),
            )
        return Response(200, content)

    def _read(self, copy: Copy | None) -> PayloadText | None:
        return None if copy is None else self.payloads.read(copy)

    def _find(self, request: Request, now: datetime) -> tuple[Copies, Route | None]:
        """Find the copies of a task, and its route.

        Copies outlive records, so an operator finds them without a record. The last copy then tells the route.
        """
        task_id = request.parameters["id"]
        caller = self.access.caller(required_identity(request))
        task = self.tasks.read(task_id, now) if is_usable(task_id) else None
        if not caller.may_see(task.owner if task is not None else None) or not is_usable(task_id):
            raise unknown_task(task_id)
        copies = self.payloads.find(task_id, task, lambda: self.tasks.hops(task_id, now))
        if task is not None:
            return copies, task.route
        if not copies.before:
            raise unknown_task(task_id)
        envelope = self.payloads.envelope(copies.last_before)
        return copies, envelope.route if envelope is not None else None


@contextmanager
def _available(task_id: str) -> Iterator[None]:
    """Turn an error of S3 into an answer."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise ApiError(503, "unavailable", f"the payloads of {task_id!r} are unavailable; try again") from error
