"""Resumes paused tasks: `POST /api/v1/mesh/{id}/resume` (`protocol §11`, `§13`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.pauses.aws.paused_envelopes import PauseKey
from asya.capabilities.pauses.lambdas.pause_release import PauseReleases
from asya.capabilities.pauses.resume_input import Answers, InvalidInputError, read_resume
from asya.capabilities.pauses.resuming import check_paused, resume_task
from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.protocol import states
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.pause import ANSWERS_LIMIT
from asya.protocol.task import TaskRecord
from asya.tasks.aws.tasks import Tasks


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """The response: the task continues."""

    id: str
    status: str = states.RUNNING


@dataclass(frozen=True)
class ResumeRoutes:
    """Ends the pauses of tasks."""

    mesh: MeshTable
    tasks: Tasks
    access: AccessRules
    pause_releases: PauseReleases

    def answer(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/{id}/resume`: 202 with the id, or 422 with the problem of each field."""
        caller = self.access.caller(required_identity(request))
        limit = min(ANSWERS_LIMIT, self.mesh.gateway.max_body)
        if len(request.body) > limit:
            raise ApiError(413, "too_large", f"the body has {len(request.body)} bytes; the limit is {limit}")
        read = read_resume(request.text)
        try:
            task_id = request.parameters["id"]
            return Response(202, self.resume(task_id, caller, read.answers, now, since=read.since))
        except InvalidInputError as invalid:
            fields = [{"name": name, "message": problem} for name, problem in invalid.fields.items()]
            error = {"code": invalid.code, "message": invalid.message, "field": invalid.field, "fields": fields}
            return Response(invalid.status, {"error": error})

    def resume(
        self, task_id: str, caller: Caller, answers: Answers, now: datetime, *, since: str | None = None
    ) -> Resumed:
        """End a task's pause.

        The write of the record is final: if the envelope is not sent at once, the pause sweep sends it.

        Args:
            task_id: the id of the task.
            caller: the caller, who must be allowed to see the task.
            answers: the input for the fields of the pause.
            now: the time of the resume.
            since: the start time of the answered pause; None for the present pause.

        Raises:
            ApiError: 404 for an unknown task, 409 if it is not paused, 503 if its stored envelope is unavailable.
            InvalidInputError: 422 if the answers do not fit the fields.
            TaskStoreError: the table is unavailable; the task is either still paused or resumed.
        """

        def check(record: TaskRecord) -> None:
            if not caller.may_see(record.owner):
                raise unknown_task(task_id)
            if since is not None and record.pause is not None and record.pause.since != since:
                raise ApiError(
                    409, "not_paused", f"the pause of {since} has ended; task {task_id!r} is in a later pause"
                )

        return self.end_pause(task_id, answers, now, check)

    def end_pause(self, task_id: str, answers: Answers, now: datetime, check: Callable[[TaskRecord], None]) -> Resumed:
        """End a task's pause for a caller whose right to do so is checked elsewhere.

        Args:
            task_id: the id of the task.
            answers: the input for the fields of the pause.
            now: the time of the resume.
            check: raises an `ApiError` if this record may not be resumed; called again if the record changes meanwhile.

        Raises:
            ApiError, InvalidInputError, TaskStoreError: see `resume`.
        """

        def decide(record: TaskRecord, _hops: object) -> TaskRecord:
            check(record)
            return resume_task(record, self._stored_envelope(record, check_paused(record)), answers, now=now)

        record = self.tasks.update(task_id, decide, now)
        if record is None:
            raise unknown_task(task_id)
        self.pause_releases.finish(record, now)
        return Resumed(id=task_id)

    def _stored_envelope(self, record: TaskRecord, epoch: int) -> Envelope:
        try:
            envelope = self.pause_releases.paused.load(PauseKey(record.id, record.generation, epoch))
        except (ClientError, BotoCoreError) as error:
            problem = f"the stored envelope of task {record.id!r} is unavailable; try again"
            raise ApiError(503, "unavailable", problem) from error
        except ParseError as error:
            raise ApiError(
                409, "not_resumable", f"the stored envelope of task {record.id!r} is unreadable: {error}"
            ) from None
        if not isinstance(envelope, Envelope):
            problem = f"the stored envelope of task {record.id!r} no longer exists; the task cannot resume"
            raise ApiError(409, "not_resumable", problem)
        return envelope
