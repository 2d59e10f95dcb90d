"""The DLQ function: copies and reports each dead letter once, leaves it on its queue (`protocol §5.13`, `§11`).

A schedule scans all queues. For each message the function writes a copy, reports the failure, notifies the set of a slice, and
marks the message as reported. All steps are idempotent, so the next scan repeats them after a crash.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.dead_letters import letters as dead_letters
from asya.capabilities.dead_letters.aws.letters import (
    DeadLetterCopies,
    DeadLetterQueue,
    ReceivedMessage,
    ReportMarks,
    copy_key,
)
from asya.capabilities.dead_letters.letters import DeadLetter, LetterEnd
from asya.ends.aws.end_claims import ClaimResult
from asya.ends.ending import leaves_as_child, report_time
from asya.ends.lambdas.ends import claim_end, is_held_by_cancellation
from asya.function.aws import clients
from asya.function.aws.receipt import Receipt
from asya.protocol import names
from asya.protocol.envelope import Envelope
from asya.protocol.errors import TaskProblem
from asya.protocol.hops import fold
from asya.protocol.status import REASONS
from asya.senders.task_keys import unsealed_body
from asya.sidecar.lambdas.entry_point import schedule_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.task_store import TaskStore, TaskStoreError

# The time of one scan over all queues; the next scan continues. Received messages stay hidden for longer than that.
SCAN_SECONDS = 60.0
HIDE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class DeadLetterWatch:
    """Scans dead-letter queues and reports their messages."""

    services: Services
    queue: Callable[[str], DeadLetterQueue]
    marks: ReportMarks
    copies: DeadLetterCopies
    tasks: TaskStore

    def sweep(self) -> None:
        """Scan all queues."""
        self.scan(dead_letters.watched_actors(self.services.settings.table))

    def scan(self, actors: Iterable[str]) -> None:
        """Scan these actors' queues in turns, so that none with many letters delays the others; nor does an error with one."""
        until = self.services.environment.monotonic() + SCAN_SECONDS
        complete = True
        scans = deque((actor, self._scan_queue(actor, until)) for actor in actors)
        try:
            while scans:
                actor, batches = scans.popleft()
                try:
                    if next(batches, None) is not None:
                        scans.append((actor, batches))
                except (ClientError, BotoCoreError, TaskStoreError):
                    complete = False
                    self.services.telemetry.log.exception(
                        "dead letters not reported; the next scan retries", queue=actor
                    )
            if complete:
                self.services.finish_sweep()
        finally:
            self.services.telemetry.flush()

    def _scan_queue(self, actor: str, until: float) -> Iterator[int]:
        """Report the letters of a queue, and yield the number of each batch."""
        queue = self.queue(actor)
        count = queue.count()
        if count.total:
            # Without dead letters there is no metric: each one of a hundred queues would be a metric to pay for.
            self.services.telemetry.measure("DeadLetters", count.total, "Count", actor=actor)
        if not count.visible:
            return
        receipt_handles: list[str] = []
        try:
            for batch in queue.scan(hide_seconds=HIDE_SECONDS, may_continue=lambda: self._has_time(until)):
                receipt_handles += [message.receipt_handle for message in batch]
                self._report_batch(actor, batch)
                yield len(batch)
        finally:
            queue.release(receipt_handles)
        if not self._has_time(until):
            self.services.telemetry.log.warning(
                "scan ended before all dead letters were read", queue=actor, count=len(receipt_handles)
            )

    def _has_time(self, until: float) -> bool:
        return self.services.environment.monotonic() < until

    def _report_batch(self, actor: str, batch: list[ReceivedMessage]) -> None:
        marked_ids = self.marks.find([message.message_id for message in batch])
        new = [message for message in batch if message.message_id not in marked_ids]
        reported = [(message, self._report(message, actor)) for message in new]
        self.services.outbox.flush()
        self.services.required_reports.flush()
        for message, receipts in reported:
            problem = next((receipt.problem for receipt in receipts if receipt.problem is not None), None)
            if problem is None:
                self.marks.add(message.message_id, epoch_seconds=self.services.now().timestamp())
            else:
                self.services.telemetry.log.warning(
                    "dead letter not reported; the next scan retries",
                    message_id=message.message_id,
                    problem=str(problem),
                )

    def _report(self, message: ReceivedMessage, actor: str) -> list[Receipt]:
        """Report one message. An unexpected error keeps the next scan from no other letter."""
        try:
            return self._report_letter(self._read_letter(message, actor), message)
        except (ClientError, BotoCoreError, TaskStoreError):
            raise
        except Exception as error:
            self.services.telemetry.log.exception("dead letter not read", message_id=message.message_id)
            receipt = Receipt("object")
            receipt.resolve(error)
            return [receipt]

    def _read_letter(self, message: ReceivedMessage, actor: str) -> DeadLetter:
        """Read a dead letter as it might enter its queue: the end of a stranger's letter is not that of the task it names."""
        arrival = message.arrival
        if actor not in dead_letters.SYSTEM_QUEUES:
            self.services.admission.note_letter(arrival, actor)
            arrival = self.services.admission.judge_letter(arrival, actor)
        return dead_letters.read_letter(arrival, actor, message.problem)

    def _report_letter(self, letter: DeadLetter, message: ReceivedMessage) -> list[Receipt]:
        """Copy and report one dead letter; a failed copy does not prevent the report."""
        end = self._letter_end(letter)
        self._log(letter, end)
        # A replay believes the copy, so it has what was admitted. A refused message is copied as it came.
        copied = message.arrival if letter.arrival.refusal is not None else letter.arrival
        receipts, mesh = [self._copy(letter, unsealed_body(copied))], self.services.settings.table
        if end is None:
            return receipts
        if end.event is not None:
            position = dead_letters.claimed_position(letter, end, mesh)
            result = claim_end(self.services, end.envelope, is_provisional=True, position=position)
            counted = self._claimed(end, result) if result.outcome == "taken" else self._other_end(letter, end, result)
            if counted is None:
                return receipts  # the copy and the message keep the end
            end = counted
        url = self.services.report_url(end.envelope)
        if end.event is not None and url is not None:
            receipts.append(self.services.required_reports.report(url, end.event))
        return [*receipts, *(self.services.outbox.send(delivery) for delivery in end.deliveries)]

    def _other_end(self, letter: DeadLetter, end: LetterEnd, result: ClaimResult) -> LetterEnd | None:
        """The end instead of one that does not count (`protocol §11`).

        It is the cancellation of its task, the claimed success of a slice, or that of a failed child.
        """
        mesh, moment = self.services.settings.table, self.services.now()
        if is_held_by_cancellation(result, end.envelope):
            return dead_letters.canceled_end(end, mesh, at=result.claimed_at or moment)
        if result.generation != end.envelope.generation:
            return None
        if result.outcome == "refused":
            stored_end = dead_letters.stored_slice_end(letter, result.claim.phase, mesh, now=moment)
            if stored_end is not None:
                return self._claimed(stored_end, result)
        if not leaves_as_child(end.envelope, result.generation, mesh):
            return None
        child_end = dead_letters.refused_end(letter, end, now=moment)
        claimed = claim_end(self.services, child_end.envelope, is_provisional=True)
        return self._claimed(child_end, claimed) if claimed.outcome == "taken" else None

    def _claimed(self, end: LetterEnd, result: ClaimResult) -> LetterEnd:
        """The end with the time of the claim that holds."""
        return dead_letters.claimed_end(end, report_time(result.claimed_at, self.services.now()))

    def _letter_end(self, letter: DeadLetter) -> LetterEnd | None:
        envelope = letter.envelope
        frame_left, problem = self._reported(envelope) if envelope is not None else (False, None)
        return dead_letters.letter_end(
            letter, self.services.settings.table, frame_left=frame_left, now=self.services.now(), problem=problem
        )

    def _reported(self, envelope: Envelope) -> tuple[bool, TaskProblem | None]:
        """Whether the envelope's first frame has left, and the last problem, according to the task's reported hops."""
        loaded = self.tasks.load(envelope.id, self.services.now())
        if loaded is None:
            return False, None
        record, hops = loaded
        total = fold(hops, record.generation)
        problem = total.problem if record.generation == envelope.generation else None
        return dead_letters.has_left(envelope, record, total.latest), problem

    def _copy(self, letter: DeadLetter, body: bytes) -> Receipt:
        receipt = Receipt("object")
        try:
            self.copies.save(letter, body)
        except (ClientError, BotoCoreError) as error:
            receipt.resolve(error)
        else:
            receipt.resolve()
        return receipt

    def _log(self, letter: DeadLetter, end: LetterEnd | None) -> None:
        """Log one ERROR line and count the failure; the reason is checked, because a status may hold any text."""
        envelope = end.envelope if end is not None else None
        status = envelope.status if envelope is not None else None
        reason = (status.reason if status else None) or "DeliveryExhausted"
        known = reason if reason in REASONS else "DeliveryExhausted"
        self.services.telemetry.count("Failed", by=("reason", known), actor=letter.actor)
        self.services.telemetry.log.error(
            "dead letter",
            queue=names.dlq_name(self.services.settings.namespace, letter.actor),
            message_id=letter.arrival.message_id,
            envelope_id=envelope.id if envelope else None,
            parent_id=envelope.parent_id if envelope else None,
            generation=envelope.generation if envelope else None,
            position=envelope.route.position if envelope else None,
            phase=status.phase if status else None,
            reason=reason,
            copy=copy_key(letter),
            problem=letter.problem,
        )


def build_dlq(services: Services) -> DeadLetterWatch:
    """Build the watch over this mesh's dead-letter queues."""
    settings = services.settings
    return DeadLetterWatch(
        services,
        lambda actor: DeadLetterQueue(clients.sqs(), settings.dlq_url(actor)),
        ReportMarks(clients.dynamodb(), settings.table_name("sink")),
        DeadLetterCopies(clients.s3(), settings.bucket),
        StoredTasks(services).store,
    )


dlq = schedule_entry_point(build_dlq)
