"""Replays envelopes as new tasks: from stored copies, or as a new set of a fan-out (`protocol §12`)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.dead_letters import kept_inputs, replay, set_replay
from asya.capabilities.dead_letters.aws.replays import ReplayCall, ReplaySources, ReplayStarts
from asya.capabilities.dead_letters.replay import Replayed, ReplayRequest, ReplayStart
from asya.capabilities.dead_letters.set_replay import FanOut
from asya.capabilities.dead_letters.settlements import settled_error
from asya.capabilities.fan_in import sets
from asya.capabilities.fan_in.aws.sets import FanInSets, SetRepeats
from asya.function.aws.claim_check import ClaimCheck
from asya.function.hop import Delivery
from asya.function.sqs import queue_group
from asya.gateway import start_rights
from asya.gateway.access import AccessRules, Caller
from asya.gateway.aws.offloading import offloaded
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.protocol import codec
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.tasks.aws.task_store import table_errors
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import Composer
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.submission import FirstMessage, first_queue
from asya.tasks.view import TaskView

# The owner of the idempotency keys; no caller has an empty name.
_ANY_CALLER = ""


@dataclass(frozen=True)
class SetReplays:
    """Starts the replays of failed sets. The fan-in actor sends and copies the slices, because there may be 5,000.

    Attributes:
        starts: starts replays, and links them to the tasks that they replay.
        keep_seconds: how long the record of a replay is kept.
    """

    tasks: Tasks
    starts: ReplayStarts
    sources: ReplaySources
    sets: FanInSets
    records: SetRepeats
    keep_seconds: float

    def start(
        self, request: ReplayRequest, call: ReplayCall, stored: Envelope, compose: Composer, now: datetime
    ) -> Replayed:
        """Start the replay of a failed set; a repeated call finds the task of the first one.

        Args:
            request: what the call asks for.
            call: the call; the id of the new task is replaced by that of the repeated set.
            stored: the origin as it failed.
            compose: builds the message to the fan-in actor.
            now: the time of the call.

        Raises:
            ApiError: 409 if the frames or the results are not stored, or the replay belongs to another caller; 503 if a
                service is unavailable.
        """
        fan_out = self._fan_out(stored)
        with table_errors(f"read the set {fan_out.set_id}"):
            old_set = self.sets.get(fan_out.set_id)
        slices = set_replay.repeated_slices(request, fan_out, old_set.state if old_set is not None else None)
        task_id, task = self._task(request, fan_out, now)
        _check_owner(task, call.caller)
        if call.key is None and task is not None and not task.is_pending:
            return Replayed(id=task_id, replay_of=stored.id, source=fan_out.uri, slices=slices)

        def prepare(record: TaskRecord) -> TaskRecord:
            record_id = sets.record_id(replace(stored, id=record.id))
            expires_at = now.timestamp() + self.keep_seconds
            with table_errors(f"record the replay of the set {fan_out.set_id}"):
                self.records.save(record_id, set_replay.repeat_of(request, fan_out), expires_at=expires_at)
            return record

        # With a key a call that died after it wrote the task's record is finished by the next one. All callers share it.
        shared = IdempotencyKey(_ANY_CALLER, f"replay:{task_id}", task_id)
        new_id = self.starts.start(changed(call, new_id=task_id, shared_key=shared, prepare=prepare), compose, now)
        # Another caller may have started it in the meantime.
        _check_owner(self.tasks.read(new_id, now), call.caller)
        return Replayed(id=new_id, replay_of=stored.id, source=fan_out.uri, slices=slices)

    def _fan_out(self, stored: Envelope) -> FanOut:
        try:
            return set_replay.check_frames_are_kept(self.sources.fan_out(stored), stored)
        except (ClientError, BotoCoreError) as error:
            problem = f"the frames of {stored.id!r} are unavailable; try again"
            raise ApiError(503, "unavailable", problem) from error

    def _task(self, request: ReplayRequest, fan_out: FanOut, now: datetime) -> tuple[str, TaskView | None]:
        """The id of the task that repeats the set, and the task if it exists."""
        for task_id in set_replay.task_ids(request, fan_out):
            task = self.tasks.read(task_id, now)
            if task is None or not (request.force or set_replay.is_taken(task)):
                return task_id, task
        raise set_replay.too_many(fan_out)


def _check_owner(task: TaskView | None, owner: str) -> None:
    if task is not None and task.owner != owner:
        problem = "another caller has replayed this set; wait for the end of that task, or ask its owner"
        raise ApiError(409, "replayed_by_another", problem)


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
            sources = self.sources.find(old_id, task, lambda: self.tasks.hops(old_id, now))
            source = replay.choose_source(replay_request, sources, old_id, task)
            envelope = self._read(source, is_input=replay_request.hop is not None)
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
        tenant = self.access.tenant(request.identity)
        origin = set_replay.origin_of_set(envelope, self.mesh)
        if self.set_replays is not None and origin is not None:

            def compose_repeat(task_id: str, created_at: datetime) -> FirstMessage:
                start = ReplayStart(task_id, created_at, gateway_url, self.new_span(), tenant)
                return self._composed(set_replay.repeating_envelope(origin, self.mesh, start))

            return Response(201, self.set_replays.start(replay_request, call, origin, compose_repeat, now))
        if replay_request.failed_only:
            replay.check_no_slice(envelope)
            problem = f"{old_id!r} did not fail at a fan-in actor; replay it without failed_only"
            raise ApiError(409, "not_a_set", problem, "failed_only")
        replay.check_no_slice(envelope)
        place = task.actor if task is not None else None
        start_rights.check_replay(envelope, place, caller, self.mesh, force=replay_request.force)
        if task is not None and task.resolution is not None and not (task.resolution.is_open or call.force or key):
            raise settled_error(old_id, task.resolution)  # before a large payload is stored again

        def compose(task_id: str, created_at: datetime) -> FirstMessage:
            start = ReplayStart(task_id, created_at, gateway_url, self.new_span(), tenant)
            return self._composed(replay.replay_envelope(envelope, self.mesh, start))

        start = self.starts.start if task is not None else self.starts.start_without_record
        return Response(201, Replayed(id=start(call, compose, now), replay_of=old_id, source=source))

    def _visible(self, task_id: str, caller: Caller, now: datetime) -> TaskView | None:
        """Read the task; None for an operator if the record has expired, because stored envelopes outlive records."""
        task = self.tasks.read(task_id, now)
        if not caller.may_see(task.owner if task is not None else None):
            raise unknown_task(task_id)
        return task

    def _read(self, source: str, *, is_input: bool) -> Envelope:
        try:
            stored = codec.decode(self.sources.read(source))
            if is_input:
                kept_inputs.check_input(stored, source)
            return self.claim_check.redeem(stored)
        except codec.ParseError as error:
            raise ApiError(409, "unreadable", f"{source} does not contain a valid envelope: {error}") from None

    def _composed(self, envelope: Envelope) -> FirstMessage:
        queue = first_queue(envelope)
        group = queue_group(envelope, self.mesh.actors[queue])
        delivery = Delivery(queue, codec.encode(envelope), "next", group=group)
        return FirstMessage(envelope, offloaded(self.claim_check, delivery))
