"""Redrives dead letters: reopens their tasks and sends them again (`protocol §12`)."""

from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from asya.capabilities.dead_letters import redrive
from asya.capabilities.dead_letters.aws.replays import ReplayStarts
from asya.capabilities.dead_letters.letters import SYSTEM_QUEUES, DeadLetter, read_letter, watched_actors
from asya.capabilities.dead_letters.redrive import Redriven, Reopening
from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.function.hop import Arrival, Delivery
from asya.function.sqs import MESSAGE_BYTES, queue_group
from asya.gateway.access import AccessRules
from asya.gateway.aws.offloading import offloaded
from asya.gateway.http.router import Request, Response, check_size, required_identity
from asya.protocol import codec, names
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import GENERATION_LIMIT, Envelope
from asya.protocol.headers import PAYLOAD_REF
from asya.protocol.hops import HopFold
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.senders.lambdas.admission import Admission
from asya.senders.roles import role_id_of
from asya.tasks.aws.task_store import table_errors
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True)
class RedriveRoutes:
    """Sends dead letters again, each in the next generation of its task.

    Attributes:
        sender: sends a message as it is.
        claim_check: stores payloads that are too large for a message.
        sets: the sets of slices; None if the mesh has no fan-in actor.
        starts: knows which tasks are settled.
        admission: decides by the sender of a dead letter what it may bear.
    """

    mesh: MeshTable
    tasks: Tasks
    access: AccessRules
    sender: SubmissionSender
    claim_check: ClaimCheck
    sets: FanInSets | None
    starts: ReplayStarts
    admission: Admission

    def redrive(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/redrive`, for operators: the body is the dead letter.

        A repetition finds the task reopened, and sends in the same generation.
        """
        caller = self.access.caller(required_identity(request))
        check_size(request, MESSAGE_BYTES)
        actor = _required(request, "actor")
        if actor in names.REPORT_QUEUES:
            # The consumer of reports believes the gateway alone about the first sender.
            sender = _required(request, "sender")
            self._send(Delivery(actor, request.body, "report"), first_sender=sender)
            return Response(200, Redriven(id=None, generation=None))
        letter = self._letter(request, actor, now)
        envelope = letter.envelope if letter.readable else None
        letter_id = letter.envelope.id if letter.envelope is not None else None
        with table_errors(f"look up the sender of message {letter.arrival.message_id}"):
            first = self.admission.first_sender_of(letter.arrival, actor)
        if envelope is None or redrive.is_at_rest(envelope):
            self._send(Delivery(letter.actor, letter.arrival.body, "next"), first_sender=first)
            return Response(200, Redriven(id=letter_id, generation=None))
        if redrive.is_past_deadline(envelope, now):
            problem = f"its deadline has passed; `asya replay {quote(envelope.id)}` starts a task with a new deadline"
            raise ApiError(409, "deadline_passed", problem)
        next_generation = min(envelope.generation + 1, GENERATION_LIMIT)
        # Before the task is reopened: a reopened task waits for its envelope.
        self._delivery(letter, envelope, next_generation, now)
        is_forced = request.query.get("force") == "true"
        reopening = redrive.reopening_of(envelope, letter.arrival.message_id, force=is_forced)
        generation = self._reopened(envelope, reopening, next_generation, caller.principal, now)
        self._send(self._delivery(letter, envelope, generation, now), first_sender=first)
        return Response(200, Redriven(id=envelope.id, generation=generation))

    def _letter(self, request: Request, actor: str, now: datetime) -> DeadLetter:
        """Read the dead letter of a request.

        Raises:
            ApiError: 400 for a missing parameter or a malformed time; 404 for an actor without a queue; 409 for the message of
                a sender outside that may not enter the mesh, because the gateway would send it in its own name.
        """
        if actor not in watched_actors(self.mesh):
            raise ApiError(404, "unknown_actor", f"the mesh has no actor {actor!r}", "actor")
        sent_at = request.query.get("sent_at")
        try:
            time = parse_time(sent_at) if sent_at else now
        except ValueError as error:
            raise ApiError(400, "invalid_field", f"sent_at: {error}", "sent_at") from None
        arrival = Arrival(
            body=request.body,
            message_id=_required(request, "message_id"),
            sent_at=time,
            sender=role_id_of(_required(request, "sender")),
            size=len(request.body),
        )
        if actor not in SYSTEM_QUEUES:
            with table_errors(f"look up the sender of message {arrival.message_id}"):
                arrival = self.admission.judge(arrival, actor)
        if arrival.refusal is not None:
            raise ApiError(409, "refused", f"its sender may not send it: {arrival.refusal}")
        return read_letter(arrival, actor)

    def _reopened(self, envelope: Envelope, reopening: Reopening, next_generation: int, by: str, now: datetime) -> int:
        """Reopen the task of an envelope; return the generation to send in, the next one without a record."""
        if envelope.is_stealth:
            return next_generation
        self._check_set(reopening)

        def reopen(record: TaskRecord, hops: HopFold) -> TaskRecord:
            if not reopening.force:
                self.starts.check(record, now)
            return redrive.reopen(record, hops, reopening, now=now, by=by)

        record = self.tasks.update(envelope.id, reopen, now)
        return record.generation if record is not None else next_generation

    def _check_set(self, reopening: Reopening) -> None:
        place = reopening.slice
        if self.sets is None or place is None:
            return
        with table_errors(f"read the set {place.set_id}"):
            fan_in_set = self.sets.get(place.set_id)
        redrive.check_set_is_open(place, fan_in_set.state if fan_in_set is not None else None)

    def _delivery(self, letter: DeadLetter, envelope: Envelope, generation: int, now: datetime) -> Delivery:
        again = redrive.redriven_envelope(letter, envelope, generation, now=now)
        spec = self.mesh.actors.get(letter.actor)
        group = queue_group(again, spec) if spec is not None else None
        delivery = Delivery(letter.actor, codec.encode(again), "next", group=group)
        # The payload of an existing claim check is in S3 already.
        return delivery if PAYLOAD_REF in again.headers else offloaded(self.claim_check, delivery)

    def _send(self, delivery: Delivery, first_sender: str = "") -> None:
        try:
            self.sender.send(delivery, first_sender=first_sender)
        except NotSentError as error:
            problem = f"the dead letter was not sent: the queue of {delivery.actor!r} rejected it"
            raise ApiError(503, "not_sent", problem) from error
        except MaybeSentError as error:
            problem = f"the dead letter may or may not have been sent: the queue of {delivery.actor!r} did not answer"
            raise ApiError(503, "maybe_sent", problem) from error


def _required(request: Request, name: str) -> str:
    value = request.query.get(name)
    if not value:
        raise ApiError(400, "missing_parameter", f"the parameter {name} is missing", name)
    return value
