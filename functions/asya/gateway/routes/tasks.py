"""Starts tasks and reads their records (`protocol §13`)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asya.gateway.access import AccessRules
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, required_identity
from asya.gateway.http.visible_tasks import visible_task
from asya.gateway.start_rights import check_start
from asya.protocol.mesh_table import MeshTable
from asya.starts.aws.task_starter import TaskStarter
from asya.starts.submission import first_message, is_stealth, read_submission
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class TaskRoutes:
    """Starts tasks and reads their records.

    Attributes:
        new_id: creates the id of a task.
    """

    mesh: MeshTable
    tasks: Tasks
    starter: TaskStarter
    access: AccessRules
    origins: Origins
    new_id: Callable[[], str]

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
        return Response(200, visible_task(self.tasks, request.parameters["id"], caller, now))
