"""The gateway's call for ending a pause: `POST /api/v1/mesh/{id}/resume` (`protocol §11`, `§13`)."""

from dataclasses import dataclass
from datetime import datetime

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import HttpRoute, Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.pause.aws.paused_envelopes import PauseKey
from asya.pause.lambdas.pause_release import PauseReleases
from asya.pause.resume_input import Answers, InvalidInputError, read_request
from asya.pause.resuming import check_paused, resume_task
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.tasks.aws.tasks import Tasks

# The input waits in the task's record, of which the table takes 400 KB.
INPUT_LIMIT = 128 * 1024


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: the task goes on."""

    id: str
    status: str = "running"


@dataclass(frozen=True)
class ResumeRoutes:
    """What the call needs, and the call."""

    mesh: MeshTable
    tasks: Tasks
    access: AccessRules
    pause_releases: PauseReleases

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The call as of one moment."""
        return (HttpRoute("POST", "/api/v1/mesh/{id}/resume", lambda request: self.answer(request, now)),)

    def answer(self, request: Request, now: datetime) -> Response:
        """202 with the id; 422 with what is wrong with each field."""
        caller = self.access.caller(required_identity(request))
        limit = min(INPUT_LIMIT, self.mesh.gateway.max_body)
        if len(request.body) > limit:
            raise ApiError(413, "too_large", f"the body has {len(request.body)} bytes; a resume takes {limit}")
        try:
            return Response(202, self.resume(request.parameters["id"], caller, read_request(request.body), now))
        except InvalidInputError as invalid:
            fields = [{"name": name, "message": problem} for name, problem in invalid.fields.items()]
            error = {"code": invalid.code, "message": invalid.message, "field": invalid.field, "fields": fields}
            return Response(invalid.status, {"error": error})

    def resume(
        self, task_id: str, caller: Caller, answers: Answers, now: datetime, *, since: str | None = None
    ) -> Resumed:
        """End a task's pause.

        From the write that makes it running there is no way back: if the envelope cannot be sent at once, a sweep sends it.

        Args:
            since: the pause that is answered, by when it began; None for whichever it is in.

        Raises:
            ApiError: 404 if there is no such task, 409 if it is not paused, 503 if what is kept of it cannot be read now.
            InvalidInputError: 422 if the answers do not fit.
            TaskStoreError: if the table cannot be read or written; the task stays paused, or has been resumed for sure.
        """

        def decide(record: TaskRecord, _hops: object) -> TaskRecord:
            if not caller.may_see(record.owner):
                raise unknown_task(task_id)
            if since is not None and record.pause is not None and record.pause.since != since:
                raise ApiError(409, "not_paused", f"task {task_id!r} is in another pause than the one of {since}")
            return resume_task(record, self._kept(record, check_paused(record)), answers, now=now)

        record = self.tasks.update(task_id, decide, now)
        if record is None:
            raise unknown_task(task_id)
        self.pause_releases.finish(record, now)
        return Resumed(id=task_id)

    def _kept(self, record: TaskRecord, epoch: int) -> Envelope:
        try:
            found = self.pause_releases.paused.load(PauseKey(record.id, record.generation, epoch))
        except (ClientError, BotoCoreError) as error:
            problem = f"what is kept of task {record.id!r} cannot be read just now; try again ({error})"
            raise ApiError(503, "unavailable", problem) from error
        except ParseError as error:
            raise ApiError(409, "not_resumable", f"what is kept of task {record.id!r} is unreadable: {error}") from None
        if not isinstance(found, Envelope):
            problem = f"nothing is kept any more of task {record.id!r}: it cannot go on from where it paused"
            raise ApiError(409, "not_resumable", problem)
        return found
