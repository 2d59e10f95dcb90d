"""The DLQ function: whatever lies in a dead-letter queue is copied, reported once, and left there (`protocol §5.13`, `§11`).

Woken by the alarm of one queue, and every few minutes for all of them: an alarm speaks once, however many messages follow.
For each message: its copy, the report, word to the sets that wait for it, then the note that it is done. A death in between
does all of it again at the next look; each of them may be done twice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.crew.lambdas.ends import claim_end
from asya.dead_letters import letters as dead_letters
from asya.dead_letters.aws.copies import DeadLetterCopies, copy_key
from asya.dead_letters.aws.queue import DeadLetterQueue, Seen
from asya.dead_letters.aws.report_marks import ReportMarks
from asya.dead_letters.letters import DeadLetter, Exhausted
from asya.messaging.aws.receipt import Receipt
from asya.protocol import names
from asya.protocol.envelope import Envelope
from asya.protocol.hops import fold
from asya.protocol.status import REASONS
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore, TaskStoreError

# A look has so long, all queues together; the next goes on. What it has seen stays hidden for longer than that.
LOOK_SECONDS = 60.0
HIDE_SECONDS = 120


def queues_to_scan(event: Mapping[str, Any], found: Services) -> tuple[str, ...]:
    """The actors whose dead-letter queues an event is about: one for its alarm, none for another mesh's, all for a tick."""
    everyone = dead_letters.watched(found.settings.table)
    detail = event.get("detail")
    if event.get("source") != "aws.cloudwatch" or not isinstance(detail, Mapping):
        return everyone
    alarm = detail.get("alarmName")
    return tuple(actor for actor in everyone if names.dlq_name(found.settings.namespace, actor) == alarm)


@dataclass(frozen=True, slots=True)
class DeadLetterWatch:
    """Looks at dead-letter queues."""

    services: Services
    queue: Callable[[str], DeadLetterQueue]
    notes: ReportMarks
    copies: DeadLetterCopies
    tasks: TaskStore

    def look(self, actors: Iterable[str]) -> None:
        """One look. Trouble with one queue does not keep the others from being looked at."""
        until = self.services.environment.monotonic() + LOOK_SECONDS
        try:
            for actor in actors:
                try:
                    self._look_at(actor, until)
                except (ClientError, BotoCoreError, TaskStoreError):
                    self.services.telemetry.log.exception("dead letters not reported; the next look will", queue=actor)
        finally:
            self.services.telemetry.flush()

    def _look_at(self, actor: str, until: float) -> None:
        queue = self.queue(actor)
        if not queue.count().visible:
            return
        seen: list[Seen] = []
        try:
            for some in queue.look(hide_seconds=HIDE_SECONDS, goes_on=lambda: self._has_time(until)):
                seen += some
                self._report(actor, some)
        finally:
            queue.put_back(seen)
        if not self._has_time(until):
            self.services.telemetry.log.warning("more dead letters than one look can see", queue=actor, seen=len(seen))

    def _has_time(self, until: float) -> bool:
        return self.services.environment.monotonic() < until

    def _report(self, actor: str, some: list[Seen]) -> None:
        noted = self.notes.reported([each.message_id for each in some])
        new = [each for each in some if each.message_id not in noted]
        told = [(each, self._tell(dead_letters.read(each.arrival, actor))) for each in new]
        self.services.outbox.flush()
        self.services.required_reports.flush()
        for each, receipts in told:
            problem = next((receipt.problem for receipt in receipts if receipt.problem is not None), None)
            if problem is None:
                self.notes.note(each.message_id, epoch_seconds=self.services.now().timestamp())
            else:
                self.services.telemetry.log.warning(
                    "dead letter not reported; the next look will", message_id=each.message_id, problem=str(problem)
                )

    def _tell(self, letter: DeadLetter) -> list[Receipt]:
        """All that one message calls for. Its copy and its report do not wait for each other."""
        ended = self._ended(letter)
        self._log(letter, ended)
        receipts, mesh = [self._copied(letter)], self.services.settings.table
        if ended is None:
            return receipts
        if ended.event is not None:
            claimed = claim_end(self.services, ended.envelope)
            if claimed.outcome == "refused":
                stored = dead_letters.stored_slice(letter, claimed.claim.phase, mesh, now=self.services.now())
                if stored is None or claimed.claim.generation != ended.envelope.generation:
                    return receipts
                ended = stored
        url = self.services.callback(ended.envelope)
        if ended.event is not None and url is not None:
            receipts.append(self.services.required_reports.report(url, ended.event))
        return [*receipts, *(self.services.outbox.send(delivery) for delivery in ended.deliveries)]

    def _ended(self, letter: DeadLetter) -> Exhausted | None:
        envelope = letter.envelope
        frame_left = envelope is not None and self._went_on(envelope)
        return dead_letters.exhausted(
            letter, self.services.settings.table, frame_left=frame_left, now=self.services.now()
        )

    def _went_on(self, envelope: Envelope) -> bool:
        """Read where the task is known: only its own hops tell whether this one's frames have left."""
        loaded = self.tasks.load(envelope.id, self.services.now())
        if loaded is None:
            return False
        record, hops = loaded
        return dead_letters.went_on(envelope, record, fold(hops, record.generation).latest)

    def _copied(self, letter: DeadLetter) -> Receipt:
        receipt = Receipt("object")
        try:
            self.copies.keep(letter)
        except (ClientError, BotoCoreError) as error:
            receipt.resolve(error)
        else:
            receipt.resolve()
        return receipt

    def _log(self, letter: DeadLetter, ended: Exhausted | None) -> None:
        """One ERROR line per message; what is about no task is found again by those who sent it."""
        envelope = ended.envelope if ended is not None else None
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
        )
