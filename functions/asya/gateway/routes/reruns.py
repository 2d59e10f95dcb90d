"""The gateway's calls for running something again: reopening a task for a redrive, replaying an envelope (`protocol §12`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.dead_letters import redrive, replay
from asya.dead_letters.aws.replay_sources import ReplaySources
from asya.dead_letters.redrive import Reopened, SliceOf
from asya.dead_letters.replay import Replayed, Start
from asya.fan_in.aws.sets import FanInSets
from asya.gateway.access import AccessRules, Caller
from asya.gateway.aws.task_starter import TaskStarter
from asya.gateway.http.router import HttpRoute, Request, Response, check_size, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.gateway.submission import first_queue
from asya.messaging.aws.claim_check import ClaimCheck, EnvelopeTooLargeError
from asya.messaging.delivery import Delivery
from asya.messaging.fair_queues import queue_group
from asya.protocol import codec
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView


@dataclass(frozen=True)
class RerunRoutes:
    """What the calls need, and the calls.

    Attributes:
        sets: the sets of slices; None if the mesh has no fan-in actor.
        claim_check: fetches payloads, and puts aside those that are too large to be sent.
    """

    mesh: MeshTable
    tasks: Tasks
    starter: TaskStarter
    access: AccessRules
    sources: ReplaySources
    claim_check: ClaimCheck
    sets: FanInSets | None
    gateway_url: str | None
    new_id: Callable[[], str]
    new_span: Callable[[], str]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            HttpRoute("POST", "/api/v1/mesh/{id}/reopen", lambda request: self.reopen(request, now)),
            HttpRoute("POST", "/api/v1/mesh/{id}/replay", lambda request: self.replay(request, now)),
        )

    def reopen(self, request: Request, now: datetime) -> Response:
        """Operators only: begin the next generation of a task, whose dead letter is sent then. Repeated, it changes nothing."""
        if not self.access.caller(required_identity(request)).is_operator:
            raise ApiError(403, "forbidden", "only the mesh's operators reopen tasks")
        check_size(request, self.mesh.gateway.max_body)
        asked = redrive.read_reopening(request.body)
        if asked.slice is not None:
            self._check_set(asked.slice)
        task_id = request.parameters["id"]
        record = self.tasks.update(task_id, lambda record, hops: redrive.reopen(record, hops, asked, now=now), now)
        if record is None:
            raise unknown_task(task_id)
        return Response(200, Reopened(id=task_id, generation=record.generation))

    def _check_set(self, asked: SliceOf) -> None:
        if self.sets is None:
            return
        with table_errors(f"read the set {asked.set_id}"):
            found = self.sets.get(asked.set_id)
        redrive.check_set(asked, found.state if found is not None else None)

    def replay(self, request: Request, now: datetime) -> Response:
        """Start a new task from what is kept of an envelope: 201 with its id. Of the old one nothing changes."""
        caller = self.access.caller(required_identity(request))
        check_size(request, self.mesh.gateway.max_body)
        asked = replay.read_replay(request.body)
        old_id = request.parameters["id"]
        task = self._visible(old_id, caller, now)
        try:
            source = replay.chosen(asked, self.sources.find(old_id, task), old_id, task)
            kept = self._read(source)
        except (ClientError, BotoCoreError) as error:
            problem = f"what is kept of {old_id!r} cannot be read just now; try again ({error})"
            raise ApiError(503, "unavailable", problem) from error
        gateway_url = self.gateway_url or request.base_url

        def compose(task_id: str, created_at: datetime) -> tuple[Envelope, Delivery]:
            start = Start(task_id, created_at, gateway_url, self.new_span())
            return self._composed(replay.replayed(kept, self.mesh, start))

        new_id = self.starter.start(compose, caller.principal, self.new_id(), now)
        return Response(201, Replayed(id=new_id, replay_of=old_id, source=source))

    def _visible(self, task_id: str, caller: Caller, now: datetime) -> TaskView | None:
        """The task, or None if there is none and the caller is an operator: objects outlive records."""
        task = self.tasks.read(task_id, now)
        if not caller.may_see(task.owner if task is not None else None):
            raise unknown_task(task_id)
        return task

    def _read(self, source: str) -> Envelope:
        try:
            return codec.decode(self.claim_check.redeem(self.sources.read(source)))
        except codec.ParseError as error:
            raise ApiError(409, "unreadable", f"{source} holds no envelope that can be sent: {error}") from None

    def _composed(self, envelope: Envelope) -> tuple[Envelope, Delivery]:
        queue = first_queue(envelope)
        group = queue_group(envelope, self.mesh.actors[queue])
        delivery = Delivery(queue, codec.encode(envelope), "next", group=group)
        try:
            sendable = self.claim_check.offload(delivery)
        except EnvelopeTooLargeError as error:
            raise ApiError(413, "too_large", str(error)) from error
        except (ClientError, BotoCoreError) as error:
            raise ApiError(503, "unavailable", f"its payload cannot be put aside just now: {error}") from error
        if sendable.actor != queue:
            raise ApiError(413, "too_large", "the envelope is too large to be sent even without its payload")
        return envelope, sendable
