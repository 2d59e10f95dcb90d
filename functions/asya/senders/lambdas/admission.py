"""Admits the messages of a batch: those of the mesh's own roles as they are, all others as new tasks (`protocol §4.entry`)."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import structs
from msgspec.structs import replace

from asya.capabilities.legacy import child_ids
from asya.function.hop import Arrival
from asya.function.lambdas.batch import Record
from asya.function.nack import ServiceError
from asya.protocol import ids, names
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope
from asya.protocol.headers import KEY, WAIT
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import decode_message
from asya.protocol.task_key import WrongKeyError, without_key
from asya.senders import entry
from asya.senders.aws.entry_items import LetterSenders, OwnerClaims
from asya.senders.aws.key_items import MissingSecretError
from asya.senders.aws.role_list import RoleList
from asya.senders.statements import UNLISTED, Proof, Statement, problem, proof_of
from asya.senders.task_keys import EntryKeys, MeshKeys, runs_code, unsealed


class Admission(msgspec.Struct, frozen=True):
    """Decides by the sender of each message what it may bear.

    Attributes:
        actor: the actor of this function.
        keys: check what a role with code of users sends, or give keys to what enters here.
        each: applies a function to many messages, at the same time where the process may have threads.
    """

    mesh: MeshTable
    actor: str
    roles: RoleList
    owners: OwnerClaims
    letters: LetterSenders
    keys: EntryKeys | MeshKeys
    now: Callable[[], datetime]
    each: Callable[[Callable[[Record], Record], Iterable[Record]], Iterable[Record]] = map

    def admit(self, items: Sequence[Record]) -> list[Record]:
        """The messages of this actor's queue as they may enter.

        A message that cannot be judged now has a `problem`, and stays on its queue.
        """
        admitted = {record.message_id: record for record in items}
        outside: list[Record] = []
        repeated = [record for record in items if _is_noted(record.arrival.receive_count)]
        unknown: ServiceError | None = None
        for record in items:
            # Without the list nobody is judged; a second call would only take the time of the batch.
            if unknown is None:
                try:
                    if not self.has_role(record.arrival):
                        outside.append(record)
                    else:
                        is_code = self._is_of_code(record.arrival)
                        arrival = self._of_role(record.arrival, self.actor, is_code=is_code)
                        admitted[record.message_id] = replace(record, arrival=arrival)
                except (ClientError, BotoCoreError, MissingSecretError) as error:
                    unknown = _unjudged(error)
                except Exception as error:  # noqa: BLE001 - no message may hold up the rest of the batch
                    admitted[record.message_id] = replace(record, problem=error)
            if unknown is not None:
                admitted[record.message_id] = replace(record, problem=unknown)
        # A claim waits for the table, and those of a batch wait at the same time.
        enter = self.each if len(outside) > 1 else map
        admitted |= {record.message_id: record for record in enter(self._admitted, outside)}
        if repeated and unknown is None:
            self._note_repeated(repeated)
        return list(admitted.values())

    def _note_repeated(self, repeated: Sequence[Record]) -> None:
        """Note who sent messages that may become dead letters: SQS may move those back before x-dlq has seen them.

        Without the table nothing is noted, and nothing waits for it: x-dlq notes what becomes a dead letter.
        """
        with suppress(ClientError, BotoCoreError):
            for record in repeated:
                first = self._first_sender(record.arrival, self.actor)
                self.letters.note(record.arrival.body, first, self.now(), self.actor)

    def judge(self, arrival: Arrival, actor: str) -> Arrival:
        """The message as it may enter: unchanged from the mesh, otherwise as the first envelope of its task, or as refused.

        Args:
            actor: the actor on whose queue the message lay.

        Raises:
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        if self.has_role(arrival):
            return self._judged(arrival, actor)
        # SQS's own redrive makes its caller the sender. A bare message is looked up only if its id is somebody else's.
        moved = self._first_sent(arrival, actor) if actor in names.END_ACTORS or _bears_state(arrival) else None
        if moved is None:
            judged = self._entered(arrival, actor)
            if judged.refusal is None or (moved := self._first_sent(arrival, actor)) is None:
                return judged
        if not self.has_role(moved):
            return self._entered(moved, actor)
        # Code of users writes the notes of its own queue, where each message of the mesh bears a key.
        return self._judged(moved, actor, is_code=runs_code(self.mesh, actor))

    def _judged(self, arrival: Arrival, actor: str, *, is_code: bool = False) -> Arrival:
        """The message of a role of the mesh as it may count, for a function that has not its queue.

        Nobody has claimed the id of a task that code of users has started, and that has not begun.

        Args:
            is_code: whether code of users may have sent the message, whatever its role.
        """
        is_code = is_code or self._is_of_code(arrival)
        judged = self._of_role(arrival, actor, is_code=is_code)
        if judged.refusal is None and is_code and (start := self._start_in(judged, actor)) is not None:
            refusal = self.refusal(start, arrival)
            return judged if refusal is None else structs.replace(judged, is_new=True, refusal=refusal)
        return judged

    def judge_letter(self, arrival: Arrival, actor: str) -> Arrival:
        """As `judge`, for a message in the dead-letter queue of an actor (`protocol §4.keys.letters`).

        Code of users may put there what was at no function. It is at the actor of the queue, whatever actor its status names.

        Raises:
            ClientError, BotoCoreError: a table cannot be read or written.
        """
        judged = self.judge(arrival, actor)
        if judged.is_new or judged.refusal is not None or actor in names.END_ACTORS:
            return judged
        place = self._sender_of_retry(arrival) if actor == names.WAIT else actor
        try:
            envelope = judged.envelope()
        except ParseError:
            return judged  # it is about a set
        status = envelope.status
        if status is None or place is None or status.actor == place:
            return judged
        return structs.replace(judged, body=encode(replace(envelope, status=replace(status, actor=place))))

    def _sender_of_retry(self, arrival: Arrival) -> str | None:
        """The actor whose code has sent its retry to x-wait; None for another sender, which tells the actor truly."""
        function = self.roles.function_of(self._first_sender(arrival, names.WAIT))
        return function if function is not None and runs_code(self.mesh, function) else None

    def _of_role(self, arrival: Arrival, actor: str, *, is_code: bool) -> Arrival:
        """The message of a role of the mesh without its key, or as refused if the code of users may not have sent it.

        Args:
            is_code: whether code of users may have sent it.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        if isinstance(self.keys, EntryKeys):
            return arrival  # code of users reads no key
        if not is_code and KEY.encode() not in arrival.body:
            return arrival
        try:
            envelope = arrival.envelope()
        except ParseError as error:
            return self._unreadable(arrival, error, actor) if is_code else arrival
        if is_code and self._start_in(arrival, actor) is not None:
            return structs.replace(arrival, body=encode(entry.starting(envelope)))
        plain = unsealed(arrival, envelope)
        return plain if not is_code else self._held(plain, envelope, self.keys, actor)

    def _held(self, plain: Arrival, envelope: Envelope, keys: MeshKeys, actor: str) -> Arrival:
        """What code of users has sent, or as refused without the key of its task. An end is that of the actor that says it."""
        function = self.function_of(plain)
        try:
            keys.check(envelope)
        except WrongKeyError as error:
            return entry.refuse(plain, f"{function} may not speak for the task {envelope.id!r}: {error}")
        if WAIT in envelope.headers and actor != names.WAIT:
            # Only the sweep says that a wait is over. To x-wait, an actor says when its own retry is due.
            envelope = without_key(envelope).with_headers({WAIT: None})
            plain = structs.replace(plain, body=encode(envelope))
        status, spec = envelope.status, self.mesh.actors.get(function or "")
        is_end = actor in names.END_ACTORS and status is not None and status.actor not in (function, names.SUMP)
        # An end actor passes on the ends of others.
        if not is_end or status is None or spec is None or spec.kind == "end":
            return plain
        own = replace(without_key(envelope), status=replace(status, actor=function))
        return structs.replace(plain, body=encode(own))

    def _unreadable(self, arrival: Arrival, error: ParseError, actor: str) -> Arrival:
        """What code of users has sent and is no envelope; it may be about a set."""
        spec = self.mesh.actors.get(actor)
        if spec is not None and spec.kind == "fan_in" and decode_message(arrival.body) is not None:
            return arrival
        # Its id may be that of a task that its sender does not hold.
        error.envelope_id = None
        return structs.replace(arrival, is_new=True, refusal=error)

    def _is_of_code(self, arrival: Arrival) -> bool:
        """Whether a role of the mesh with code of users has sent the message; not while the list of roles is incomplete."""
        function = self.function_of(arrival)
        return function is not None and runs_code(self.mesh, function)

    def _start_in(self, arrival: Arrival, actor: str) -> Envelope | None:
        """The envelope with which code of users starts a task: one without a status and a key, under an id that it may claim."""
        try:
            envelope = arrival.envelope()
        except ParseError:
            return None
        has_own_id = not ids.is_reserved(envelope.id) or envelope.id == ids.id_of_message(arrival.message_id)
        is_start = envelope.status is None and KEY not in envelope.headers and has_own_id
        return envelope if is_start and actor not in names.END_ACTORS else None

    def refusal(self, envelope: Envelope, arrival: Arrival) -> ParseError | None:
        """Why a role of the mesh may not start a task under the id of an envelope; None if the id is claimed now.

        Raises:
            ClientError, BotoCoreError: the table cannot be written.
        """
        if isinstance(self.keys, EntryKeys) and KEY in envelope.headers:
            return None  # its task has begun, and the function that checks its key says so
        if envelope.id == ids.id_of_message(arrival.message_id):
            return None  # a legacy message without an id
        return entry.refusal_of(envelope, lambda new: self._claim(new, arrival.sender))

    def has_role(self, arrival: Arrival) -> bool:
        """Whether a role of the mesh has sent the message.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        return self.roles.is_listed(arrival.sender)

    def function_of(self, arrival: Arrival) -> str | None:
        """The function of the mesh whose role has sent the message; None for any other sender, and for a role not listed yet.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        return self.roles.function_of(arrival.sender)

    def origin_of(self, arrival: Arrival) -> str | None:
        """The function of the mesh that has sent the message first; None for a sender outside.

        For a dead letter that the gateway sends again it is the function that has sent the letter.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        function = self.function_of(arrival)
        if function == names.GATEWAY_API and arrival.first_sender:
            return self.roles.function_of(arrival.first_sender)
        return function

    def problem(self, arrival: Arrival, statement: Statement, about: str | None = None) -> str | None:
        """Why a statement does not count from the first sender of its message; None if it does.

        Args:
            about: the actor that the statement is about.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        return problem(statement, self.mesh, self._speaker(arrival), at=self.actor, about=about)

    def heard(self, record: Record, statement: Statement, *others: Statement) -> Record:
        """A message as it counts: refused if its sender may not say this, and with a `problem` if nobody can judge that now.

        Args:
            statement: what the message says.
            others: what it may say instead.
        """
        if record.problem is not None or record.arrival.is_new:
            return record
        try:
            refused = self.problem(record.arrival, statement)
            if refused is not None and any(self.problem(record.arrival, each) is None for each in others):
                refused = None
        except (ClientError, BotoCoreError) as error:
            return replace(record, problem=_unjudged(error))
        return record if refused is None else replace(record, arrival=entry.refuse(record.arrival, refused))

    def proof(self, arrival: Arrival, statement: Statement) -> Proof | None:
        """What has to show a statement, besides the role of the first sender of its message; None if it does not count.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        return proof_of(statement, self.mesh, self._speaker(arrival), at=self.actor)

    def _speaker(self, arrival: Arrival) -> str | None:
        function = self.origin_of(arrival)
        if function is None and not self.roles.is_complete():
            return UNLISTED
        return function

    def knows_origin(self, arrival: Arrival) -> bool:
        """Whether the list of roles can tell who has sent the message. Before it is complete a role may be missing.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        return arrival.is_new or self.origin_of(arrival) is not None or self.roles.is_complete()

    def first_sender_of(self, arrival: Arrival, actor: str) -> str:
        """Who has sent a dead letter first: a function that gives a message up puts it into its dead-letter queue itself.

        Args:
            actor: the actor on whose dead-letter queue it lies.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        if self.function_of(arrival) != actor:
            return arrival.sender
        return self.letters.sender_of(arrival.body, actor) or arrival.sender

    def note_letter(self, arrival: Arrival, actor: str) -> None:
        """Note who sent a dead letter at first: SQS's own redrive makes its caller the sender, and the letter may die again.

        Args:
            actor: the actor on whose dead-letter queue it lies.

        Raises:
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        # What code of users has noted counts at its own queue alone.
        noted_by = None if runs_code(self.mesh, actor) else actor
        self.letters.note(arrival.body, self._first_sender(arrival, noted_by), self.now())

    def note_given_up(self, body: bytes, sender: str) -> None:
        """Note who sent a message that this function gives up: SQS may move it back before x-dlq has seen it.

        Args:
            body: the message as admitted, which differs from what a sender outside has sent.
            sender: its first sender.

        Raises:
            ClientError, BotoCoreError: the table cannot be written.
        """
        self.letters.note(body, sender, self.now(), self.actor)

    def _first_sender(self, arrival: Arrival, actor: str | None) -> str:
        """Who sent a message before SQS's own redrive moved it.

        Args:
            actor: the actor whose notes count besides those of x-dlq; None for none.
        """
        first = arrival if self.has_role(arrival) else self._first_sent(arrival, actor) or arrival
        return first.sender

    def _first_sent(self, arrival: Arrival, actor: str | None) -> Arrival | None:
        """The message as it was sent before SQS's own redrive moved it; None if nobody has noted it."""
        sender = self.letters.sender_of(arrival.body, actor)
        return structs.replace(arrival, sender=sender) if sender is not None else None

    def _entered(self, arrival: Arrival, actor: str) -> Arrival:
        if actor in names.END_ACTORS:
            return entry.refuse(arrival, entry.ENDS_ARE_OF_THE_MESH)
        return entry.enter(arrival, actor, lambda envelope: self._claim(envelope, arrival.sender), self.keys.enter)

    def _admitted(self, record: Record) -> Record:
        try:
            arrival = self.judge(record.arrival, self.actor)
        except (ClientError, BotoCoreError, MissingSecretError) as error:
            return replace(record, problem=_unjudged(error))
        except Exception as error:  # noqa: BLE001 - no message may hold up the rest of the batch
            return replace(record, problem=error)
        return record if arrival is record.arrival else replace(record, arrival=arrival)

    def claim_numbered_ids(self, envelope: Envelope) -> bool:
        """Claim the numbered ids of an envelope for the children of this hop; False if others have them (`protocol §14`).

        Raises:
            ClientError, BotoCoreError: the table cannot be written.
        """
        return self.owners.claim_numbered(envelope.id, child_ids.hop_claimant(envelope), self._end_of_claim(envelope))

    def _claim(self, envelope: Envelope, owner: str) -> bool:
        until = self._end_of_claim(envelope)
        parent = child_ids.numbered_of(envelope.id) if self._numbers_children else None
        if parent is not None and not self.owners.claim_numbered(parent, child_ids.SENDERS, until):
            return False
        return self.owners.claim(envelope.id, owner, until, self.actor)

    def _end_of_claim(self, envelope: Envelope) -> datetime | None:
        return entry.end_of_claim(envelope, self.now(), self.mesh.retention)

    @property
    def _numbers_children(self) -> bool:
        return child_ids.has_numbered_ids(self.mesh)


def _is_noted(receive_count: int) -> bool:
    """Whether the sender of a message is noted at this receive: the second, the fourth, the eighth and so on."""
    return receive_count > 1 and receive_count & (receive_count - 1) == 0


def _unjudged(error: Exception) -> ServiceError:
    """The error of messages that nobody can judge now: an outage like any other."""
    problem = ServiceError(f"the table of roles and claims does not answer, so nobody knows who may send what: {error}")
    problem.__cause__ = error
    return problem


def _bears_state(arrival: Arrival) -> bool:
    """Whether it matters who has sent the message; messages that are no envelopes may be control messages of the mesh."""
    try:
        return entry.bears_state(arrival.envelope())
    except ParseError:
        return True
