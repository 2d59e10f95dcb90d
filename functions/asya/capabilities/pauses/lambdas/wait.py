"""Wait actors and x-wait hold envelopes until they are due, and send them on (`protocol §11`, `§8.retry`).

The order of a wait makes every step repeatable: hold the envelope, report the wait, acknowledge the message. After a
crash the redelivery finds the held envelope and reports it again. The sweep sends the envelope back when it is due,
and the actor sends it on.

The order of a release makes every step repeatable: send, write the tombstone, mark the record. If the process dies in
between, the next sweep sends the same message again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.pauses import waiting
from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes, Tombstone, WaitKey
from asya.capabilities.pauses.limits import longest_wait
from asya.capabilities.pauses.waiting import as_sent, is_due, release_delivery
from asya.function.aws.receipt import Receipt
from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.function.hop import Diversion, Hop
from asya.function.lambdas.batch import BatchResponse, Record
from asya.function.targets import actual_actor
from asya.protocol import states
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.protocol.wait import TaskWait
from asya.sidecar.lambdas.crew_hops import pass_on, process_batch, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.metrics_and_spans import trace_hop
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.reporting import reports


@dataclass(frozen=True, slots=True)
class WaitActor:
    """Processes the messages of a wait actor: envelopes that arrive, and those that the sweep sends back."""

    services: Services
    held: HeldEnvelopes

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Hold one envelope, or send it on. An error in any step keeps the message on the queue."""
        started = intake.start(record)
        if isinstance(started, Diversion):
            return send_diversion(self.services, started, record, "not waiting")
        if waiting.is_release(started.envelope):
            return [pass_on(self.services, started)]
        held = self.held.load(_key(started))
        if isinstance(held, Tombstone):
            self.services.telemetry.log.info("wait is over", envelope_id=started.envelope.id)
            self.services.telemetry.count("Processed", by=("outcome", "diverted"))
            return []
        if held is None:
            outcome = self._hold(started)
            if isinstance(outcome, Diversion):
                return send_diversion(self.services, outcome, record, "not waiting")
            if isinstance(outcome, Receipt):
                return [outcome]
            held = outcome
        self._report(started, held)
        return []

    def _hold(self, hop: Hop) -> Envelope | Receipt | Diversion:
        """Hold an envelope until it is due; send it on if it is due now."""
        now = self.services.now()
        until = waiting.due(
            hop,
            is_recorded=self.services.records_task(hop.envelope),
            longest=longest_wait(self.services.settings.table.retention),
            now=now,
        )
        if isinstance(until, Diversion):
            return until
        if until <= now:
            return pass_on(self.services, hop)
        return self._saved(hop, until, now)

    def _saved(self, hop: Hop, until: datetime, now: datetime) -> Envelope:
        held = waiting.held_envelope(hop, until, now=now)
        if self.held.save(_key(hop), held):
            return held
        first = self.held.load(_key(hop))
        if not isinstance(first, Envelope):
            raise TypeError(f"another delivery of {hop.envelope.id} was held and sent meanwhile")
        return first

    def _report(self, hop: Hop, held: Envelope) -> None:
        """Report the wait and require acceptance: nothing else finds the envelope when it is due."""
        now, url = self.services.now(), self.services.report_url(held)
        if url is None:
            raise RuntimeError(f"the mesh has no gateway to report the wait of {held.id} to")
        self.services.progress.report(url, reports.received(hop, now=now))
        self.services.progress.report(url, reports.processing(hop, now=now))
        report = waiting.waiting_report(held, hop.actor, attempt=hop.attempt, wait=waiting.wait_header(held))
        receipt = self.services.required_reports.report(url, report)
        self.services.required_reports.flush()
        if receipt.problem is not None:
            raise receipt.problem
        self.services.telemetry.count("Processed", by=("outcome", states.WAITING))
        trace_hop(self.services, hop, now, action="wait")


def _key(hop: Hop) -> WaitKey:
    return WaitKey(*hop.attempt_key)


@dataclass(frozen=True, slots=True)
class RetryWait:
    """Processes the messages of x-wait: envelopes whose next attempt at another actor is days ahead.

    It needs no pre-flight: the record of a canceled task makes the envelope due at once, and its actor ends it.
    """

    services: Services
    held: HeldEnvelopes

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle, asks_states=False)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Hold one retry. An error in any step keeps the message on the queue."""
        received = intake.unstarted(record)
        if isinstance(received, Diversion):
            return send_diversion(self.services, received, record, "not waiting")
        envelope, now = received.envelope, self.services.now()
        url = self.services.report_url(envelope)
        if url is None or not self.services.records_task(envelope) or not waiting.is_release(envelope):
            return [self.services.outbox.send(waiting.early_retry(envelope, received.mesh, now=now))]
        longest = longest_wait(self.services.settings.table.retention)
        attempt = (envelope.status.attempt if envelope.status else None) or 1
        key = WaitKey(envelope.id, envelope.generation, envelope.route.position, attempt)
        held = waiting.held_retry(envelope, now=now, longest=longest)
        if not self.held.save(key, held):
            first = self.held.load(key)
            if not isinstance(first, Envelope):
                return []  # it was sent on already
            held = first
        actor = actual_actor(held, held.route.curr)
        report = waiting.waiting_report(held, actor, attempt=attempt, wait=waiting.wait_header(held))
        receipt = self.services.required_reports.report(url, report)
        self.services.telemetry.count("Processed", by=("outcome", states.WAITING))
        return [receipt]


@dataclass(frozen=True, slots=True)
class WaitReleases:
    """Releases the envelopes whose wait is due.

    Attributes:
        warn: logs a release that the next sweep must repeat.
    """

    mesh: MeshTable
    tasks: Tasks
    held: HeldEnvelopes
    sender: SubmissionSender
    warn: Callable[[str], None]

    def finish(self, record: TaskRecord, now: datetime) -> bool:
        """Send the envelope of a record whose wait is due, and mark the wait as sent; returns whether that is done.

        An error is only logged, because the next sweep repeats the release.
        """
        wait = record.wait
        if wait is None or not is_due(wait, now):
            return False
        try:
            self._send(record, wait, now)
            self._mark(record.id, wait, now)
        except (NotSentError, MaybeSentError, TaskStoreError, ClientError, BotoCoreError, ParseError) as error:
            self.warn(
                f"task {record.id} waits at {wait.actor} beyond {wait.until}; the next sweep tries again: {error}"
            )
            return False
        return True

    def _send(self, record: TaskRecord, wait: TaskWait, now: datetime) -> None:
        key = WaitKey(record.id, record.generation, wait.position, wait.attempt)
        envelope = self.held.load(key)
        if isinstance(envelope, Envelope):
            self.sender.send(release_delivery(envelope, self.mesh, now))
            self.held.mark_resumed(key, at=format_time(now))
        elif envelope is None:
            self.warn(f"task {record.id} cannot go on after its wait at {wait.actor}: its held envelope has expired")

    def _mark(self, task_id: str, wait: TaskWait, now: datetime) -> None:
        self.tasks.update(task_id, lambda record, _: as_sent(record, wait), now)
