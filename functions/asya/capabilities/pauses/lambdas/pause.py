"""x-pause and actors of kind `pause` store envelopes; x-resume routes them on (`protocol §11`, `§5.9`).

The order of a pause makes every step repeatable: store the envelope, note the pause beside the claims on ends, report
the pause, publish the event, record the publication, acknowledge the message. After a crash the redelivery finds the
stored envelope and completes the missing steps, also if the deadline has passed meanwhile.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.pauses import pausing, waiting
from asya.capabilities.pauses.aws.held_envelopes import Tombstone
from asya.capabilities.pauses.aws.notices import NotNotifiedError, PauseNotice, PauseNotices
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.capabilities.pauses.callback_tokens import Callback, key_label, sign, url_of
from asya.capabilities.pauses.limits import longest_wait
from asya.capabilities.pauses.pausing import pause_of
from asya.capabilities.pauses.resuming import release_delivery, restore, unpaused
from asya.capabilities.pauses.shown import shown_values
from asya.capabilities.pauses.statements import RELEASE
from asya.ends.aws.end_claims import EndClaims
from asya.function.aws.receipt import Receipt
from asya.function.hop import Diversion, Hop
from asya.function.lambdas.batch import BatchResponse, Record
from asya.protocol import names, states
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.events import TaskEvent
from asya.protocol.pause import PauseHeader, PauseRelease, ShownValue
from asya.protocol.times import format_time
from asya.senders.aws.token_keys import TokenKeys
from asya.senders.statements import problem
from asya.sidecar import arrival
from asya.sidecar.lambdas.crew_hops import next_delivery, pass_on, process_batch, report_hop, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.metrics_and_spans import trace_hop
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports

_STOPS = ("Canceled", "SlaExpired")


@dataclass(frozen=True, slots=True)
class PauseActor:
    """Processes the messages of a pause actor; only an envelope that cannot pause leaves it.

    So does an actor whose wait for a time stops the deadline: its pause has a timer instead of a question. There an envelope
    leaves too that is due already.

    Attributes:
        notices: publishes pauses; None for a wait, which nobody needs to answer.
        keys: signs the links that answer pauses; None without such links.
    """

    services: Services
    paused: PausedEnvelopes
    claims: EndClaims
    notices: PauseNotices | None
    keys: TokenKeys | None = None

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Pause one envelope. An error in any step keeps the message on the queue."""
        started = intake.start(record)
        if isinstance(started, Diversion) and started.why in _STOPS:
            return self._stop(intake, record, started)
        if isinstance(started, Hop) and started.spec.wait is not None and self.paused.load(_key(started)) is None:
            # A pause that has begun keeps the time of its timer.
            timed = self._with_timer(started)
            if timed is None:
                return [pass_on(self.services, started)]
            started = timed
        if isinstance(started, Hop):
            url = self.services.report_url(started.envelope)
            refusal = pausing.refusal(started, is_reported=url is not None, now=self.services.now())
            if refusal is not None and url is not None and self.paused.load(_key(started)) is not None:
                refusal = None  # another version of the actor asked other questions, and somebody may have answered
            if refusal is None and url is not None:
                return self._pause(started, url)
            started = refusal or Diversion(started.envelope.id, (), "CannotPause")
        return send_diversion(self.services, started, record, "not paused")

    def _with_timer(self, hop: Hop) -> Hop | Diversion | None:
        """The hop of a pause with a timer; None if it is due already."""
        if waiting.is_release(hop.envelope):
            return None  # it was held while the deadline of this actor ran on
        now, is_recorded = self.services.now(), self.services.records_task(hop.envelope)
        longest = longest_wait(self.services.settings.table.retention)
        until = waiting.due(hop, is_recorded=is_recorded, longest=longest, now=now)
        if isinstance(until, Diversion):
            return until
        return waiting.with_timer(hop, until) if until > now else None

    def _stop(self, intake: Intake, record: Record, stopped: Diversion) -> list[Receipt]:
        """Stop an envelope that is canceled or late, unless its pause has begun: then end the pause, or finish it."""
        hop = intake.restart(record)
        stored = self.paused.load(_key(hop)) if isinstance(hop, Hop) else None
        url = self.services.report_url(hop.envelope) if isinstance(hop, Hop) else None
        if isinstance(hop, Diversion) or stored is None or url is None:
            return send_diversion(self.services, stopped, record, "not paused")
        if stopped.why != "Canceled":
            return self._pause(hop, url)
        self.services.telemetry.count("Processed", by=("outcome", "diverted"))
        return [] if isinstance(stored, Tombstone) else [self._end_as_canceled(stored, hop.envelope.route.position)]

    def _end_as_canceled(self, stored: Envelope, epoch: int) -> Receipt:
        """Send the kept envelope of a canceled task to x-sink. The gateway may release it too: x-sink ends it once."""
        release = PauseRelease(to=names.SINK, epoch=epoch, at=format_time(self.services.now()))
        return self.services.outbox.send(release_delivery(stored, release))

    def _pause(self, hop: Hop, url: str) -> list[Receipt]:
        began_at, key = self.services.now(), _key(hop)
        paused_envelope = self._envelope(hop, key, began_at)
        if not self.paused.save(key, paused_envelope):
            stored = self.paused.load(key)
            if not isinstance(stored, Envelope):
                self._leave(key, "resumed" if isinstance(stored, Tombstone) else "gone")
                return []
            paused_envelope = stored
        seconds = self.services.now().timestamp()
        end = self.claims.note_pause(key.envelope_id, key.generation, key.epoch, epoch_seconds=seconds)
        if end is not None:
            self._leave(key, "ended")
            is_canceled = (end.phase, end.generation) == (states.CANCELED, key.generation)
            # No report of a pause follows, so nobody else would send the kept envelope to x-sink.
            return [self._end_as_canceled(paused_envelope, key.epoch)] if is_canceled else []
        pause = pausing.pause_of(paused_envelope)
        if pause is None:
            raise RuntimeError(
                f"s3://{self.services.settings.bucket}/{key.object_key} holds an envelope that did not pause"
            )
        link = self._link(key, pause.callback_until)
        shown = shown_values(paused_envelope.payload, pause.show, link)
        self._report(hop, paused_envelope, pausing.paused_report(hop, pause, link, shown), url)
        # An event leaves the mesh: it has only what the actor names.
        self._notify_if_possible(hop, pause, key, link, shown if pause.show is not None else ())
        self.services.telemetry.count("Processed", by=("outcome", states.PAUSED))
        trace_hop(self.services, hop, began_at, action="pause")
        return []

    def _envelope(self, hop: Hop, key: PauseKey, now: datetime) -> Envelope:
        """The envelope to keep, with the link in its payload if the actor says so."""
        question = hop.spec.pause
        has_link = self.keys is not None and question is not None and question.callback
        if not has_link or not self.services.records_task(hop.envelope):
            return pausing.paused_envelope(hop, now=now)
        until = now + longest_wait(self.services.settings.table.retention)
        paused = pausing.paused_envelope(hop, now=now, callback_until=until)
        link = self._link(key, format_time(until))
        if question is None or question.callback_key is None or link is None:
            return paused
        try:
            return pausing.with_link(paused, question.callback_key, link)
        except ValueError:
            return paused  # another version of the actor has stored the envelope, whose first save counts

    def _link(self, key: PauseKey, until: str | None) -> str | None:
        """The link that answers a pause; None without one.

        Raises:
            TokenKeyError: the secret of tokens cannot be read.
        """
        gateway = self.services.settings.gateway_url
        if self.keys is None or until is None or gateway is None:
            return None
        secret = self.keys.get(key_label(self.services.settings.namespace))
        return url_of(gateway, sign(secret, Callback(key.envelope_id, key.generation, key.epoch, until)))

    def _leave(self, key: PauseKey, outcome: str) -> None:
        """Leave a pause alone that is over: its task was resumed, or has ended."""
        self.services.telemetry.log.info("pause has already ended", envelope_id=key.envelope_id, now=outcome)
        self.services.telemetry.count("Processed", by=("outcome", "diverted"))

    def _report(self, hop: Hop, paused_envelope: Envelope, report: TaskEvent, url: str) -> None:
        """Report the pause and require acceptance, so the task is paused soon after its event."""
        moment, ahead = self.services.now(), (paused_envelope.route.curr, *paused_envelope.route.next)
        for event in (
            reports.received(hop, now=moment),
            reports.processing(hop, now=moment),
            reports.completed(hop, ahead, now=moment, duration_ms=0.0),
        ):
            self.services.progress.report(url, event)
        receipt = self.services.required_reports.report(url, report)
        self.services.required_reports.flush()
        if receipt.problem is not None:
            raise receipt.problem

    def _notify_if_possible(
        self, hop: Hop, pause: PauseHeader, key: PauseKey, link: str | None, shown: tuple[ShownValue, ...]
    ) -> None:
        """Publish the event; the last receive gives up on it, because a dead letter would end the task as failed."""
        try:
            self._notify(hop, pause, key, link, shown)
        except (ClientError, BotoCoreError, NotNotifiedError):
            if hop.arrival.receive_count < hop.spec.queue_receives:
                raise
            self.services.telemetry.log.exception("paused without a notification", envelope_id=key.envelope_id)

    def _notify(
        self, hop: Hop, pause: PauseHeader, key: PauseKey, link: str | None, shown: tuple[ShownValue, ...]
    ) -> None:
        if self.notices is None or self.paused.is_notified(key):
            return
        namespace, task_id = self.services.settings.namespace, key.envelope_id
        self.notices.publish(
            PauseNotice(
                message=f"Task {task_id} of the mesh {namespace} is paused at {hop.actor}: {pause.prompt}",
                resume=f"asya resume {shlex.quote(task_id)} --namespace {namespace} --pause {pause.paused_at} --input '{{…}}'",
                callback=link,
                shown=shown,
                namespace=namespace,
                id=task_id,
                actor=hop.actor,
                prompt=pause.prompt,
                fields=pause.fields,
                paused_at=pause.paused_at,
                generation=key.generation,
                position=key.epoch,
                root_id=hop.envelope.root_id,
            )
        )
        self.paused.mark_notified(key)


def _key(hop: Hop) -> PauseKey:
    return PauseKey(hop.envelope.id, hop.envelope.generation, hop.envelope.route.position)


@dataclass(frozen=True, slots=True)
class ResumeActor:
    """Processes the messages of x-resume. It needs no pre-flight, because the gateway has just set the task running."""

    services: Services
    paused: PausedEnvelopes

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle, asks_states=False)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Resume one envelope. A failed send or tombstone keeps the message on the queue."""
        started = intake.start(record)
        if isinstance(started, Hop):
            try:
                return self._resume(started)
            except ParseError as error:
                started = arrival.parse_failure(record.arrival, error, now=self.services.now())
        return send_diversion(self.services, started, record, "not resumed")

    def _resume(self, hop: Hop) -> list[Receipt]:
        # Before the list of roles is complete nobody ends a pause whose role is not listed.
        refused = problem(RELEASE, hop.mesh, self.services.admission.origin_of(hop.arrival))
        pause = pause_of(hop.envelope) if refused is None else None
        started_at = self.services.environment.monotonic()
        if pause is None:
            key, restarted, frame = None, hop, unpaused()
        else:
            key = PauseKey(hop.envelope.id, hop.envelope.generation, pause.epoch)
            stored = self.paused.load(key)
            if isinstance(stored, Tombstone):
                self.services.telemetry.log.info("already resumed", envelope_id=hop.envelope.id, epoch=key.epoch)
                self.services.telemetry.count("Processed", by=("outcome", "diverted"))
                return []
            restarted, frame = restore(hop, pause, stored)
        delivery = next_delivery(self.services, restarted, frame)
        receipt = self.services.outbox.send(delivery)
        if key is not None:
            self._mark_resumed_after_send(key, receipt)
        duration_ms = (self.services.environment.monotonic() - started_at) * 1000
        report_hop(self.services, restarted, duration_ms=duration_ms)
        outcome = delivery.outcome
        self.services.telemetry.count("Processed", by=("outcome", outcome))
        return [receipt]

    def _mark_resumed_after_send(self, key: PauseKey, receipt: Receipt) -> None:
        """Write the tombstone after the send is accepted: the other order could lose the envelope."""
        self.services.outbox.flush()
        if receipt.problem is not None:
            raise receipt.problem
        self.paused.mark_resumed(key, at=format_time(self.services.now()))
