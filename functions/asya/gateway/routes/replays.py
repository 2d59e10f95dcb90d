"""Replays envelopes: starts new tasks from stored copies (`protocol §12`)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.dead_letters import replay, set_replay
from asya.capabilities.dead_letters.aws.replay_sources import ReplaySources
from asya.capabilities.dead_letters.aws.replay_starts import ReplayCall, ReplayStarts
from asya.capabilities.dead_letters.replay import Replayed, ReplayStart
from asya.capabilities.dead_letters.settlements import settled_error
from asya.function.aws.claim_check import ClaimCheck
from asya.function.delivery import Delivery
from asya.function.fair_queues import queue_group
from asya.gateway.access import AccessRules, Caller
from asya.gateway.aws.offloading import offloaded
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.gateway.routes.set_replays import SetReplays
from asya.protocol import codec
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.submission import FirstMessage, first_queue
from asya.tasks.view import TaskView


@dataclass(frozen=True)
class ReplayRoutes:
    """Replays envelopes.

    Attributes:
        starts: starts replays, and links them to the tasks that they replay.
        set_replays: replays of sets of slices; None if the mesh has no fan-in actor.
        claim_check: loads payloads from S3, and stores payloads that are too large for a message.
    """

    mesh: MeshTable
    tasks: Tasks
    starts: ReplayStarts
    access: AccessRules
    sources: ReplaySources
    claim_check: ClaimCheck
    set_replays: SetReplays | None
    gateway_url: str | None
    new_id: Callable[[], str]
    new_span: Callable[[], str]

    def replay(self, request: Request, now: datetime) -> Response:
        """`POST …/{id}/replay`: 201 with the id of a new task from a stored envelope; the record of the old task names it."""
        caller = self.access.caller(required_identity(request))
        check_size(request, self.mesh.gateway.max_body)
        replay_request = replay.read_replay_request(request.text)
        old_id = request.parameters["id"]
        digest = hashlib.sha256(b"replay\n" + old_id.encode() + b"\n" + request.body).hexdigest()
        key = idempotency_key(request, caller.principal, digest)
        task = self._visible(old_id, caller, now)
        try:
            source = replay.choose_source(replay_request, self.sources.find(old_id, task), old_id, task)
            envelope = self._read(source)
        except (ClientError, BotoCoreError) as error:
            problem = f"the stored envelopes of {old_id!r} are unavailable; try again"
            raise ApiError(503, "unavailable", problem) from error
        call = ReplayCall(
            old_id=old_id,
            new_id=self.new_id(),
            caller=caller.principal,
            request=replay_request.start,
            force=replay_request.force,
            key=key,
        )
        gateway_url = self.gateway_url or request.base_url
        origin = set_replay.origin_of_set(envelope, self.mesh)
        if self.set_replays is not None and origin is not None:

            def compose_repeat(task_id: str, created_at: datetime) -> FirstMessage:
                start = ReplayStart(task_id, created_at, gateway_url, self.new_span())
                return self._composed(set_replay.repeating_envelope(origin, self.mesh, start))

            return Response(201, self.set_replays.start(replay_request, call, origin, compose_repeat, now))
        if replay_request.failed_only:
            replay.check_no_slice(envelope)
            problem = f"{old_id!r} did not fail at a fan-in actor; replay it without failed_only"
            raise ApiError(409, "not_a_set", problem, "failed_only")
        replay.check_no_slice(envelope)
        if task is not None and task.resolution is not None and not (task.resolution.is_open or call.force or key):
            raise settled_error(old_id, task.resolution)  # before a large payload is stored again

        def compose(task_id: str, created_at: datetime) -> FirstMessage:
            start = ReplayStart(task_id, created_at, gateway_url, self.new_span())
            return self._composed(replay.replay_envelope(envelope, self.mesh, start))

        start = self.starts.start if task is not None else self.starts.start_without_record
        return Response(201, Replayed(id=start(call, compose, now), replay_of=old_id, source=source))

    def _visible(self, task_id: str, caller: Caller, now: datetime) -> TaskView | None:
        """Read the task; None for an operator if the record has expired, because stored envelopes outlive records."""
        task = self.tasks.read(task_id, now)
        if not caller.may_see(task.owner if task is not None else None):
            raise unknown_task(task_id)
        return task

    def _read(self, source: str) -> Envelope:
        try:
            return self.claim_check.redeem(codec.decode(self.sources.read(source)))
        except codec.ParseError as error:
            raise ApiError(409, "unreadable", f"{source} does not contain a valid envelope: {error}") from None

    def _composed(self, envelope: Envelope) -> FirstMessage:
        queue = first_queue(envelope)
        group = queue_group(envelope, self.mesh.actors[queue])
        delivery = Delivery(queue, codec.encode(envelope), "next", group=group)
        return FirstMessage(envelope, offloaded(self.claim_check, delivery))
