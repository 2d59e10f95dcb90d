"""Starts tasks and reads their records (`protocol §13`)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.function.aws.outage_notes import OutageNotes, words_about_now
from asya.gateway.access import AccessRules
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, required_identity
from asya.gateway.http.visible_tasks import visible_task
from asya.gateway.start_rights import check_start
from asya.protocol.errors import TaskProblem
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import parse_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.submission import first_message, is_stealth, read_submission
from asya.tasks.view import TaskView

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
        if task.status not in ("pending", "running") or is_held or now - since < _QUIET:
            return task
        try:
            words = words_about_now(self.outages.read(), since, now)
        except (ClientError, BotoCoreError) as error:
            self.warn("notes of outages not read", exc_info=error)
            return task
        return replace(task, problem=TaskProblem(OUTAGE, words)) if words else task
