"""x-pause, and any actor of kind `pause`: keeps the envelope until somebody resumes it (`protocol §11`, `§5.9`).

In this order, so that whoever dies in between leaves something that its redelivery completes: the envelope is kept, the pause is
reported, people are notified, that is noted, the message is acked. A redelivery finds the envelope kept, and does only what is
missing.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Diversion
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import Answer, Record
from asya.pause import pausing
from asya.pause.aws.notices import NotNotifiedError, PauseNotice, PauseNotices
from asya.pause.aws.paused_envelopes import PausedEnvelopes, PauseKey, Tombstone
from asya.protocol.envelope import Envelope
from asya.protocol.pause import PauseHeader
from asya.reporting import reports
from asya.sidecar.lambdas.crew_hops import process_batch, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class PauseActor:
    """What a pause actor does with each message. Nothing leaves it but what could not pause."""

    services: Services
    paused: PausedEnvelopes
    notices: PauseNotices

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Raises whatever keeps the pause from being kept, reported or told: then the message comes again."""
        started = intake.start(record)
        if isinstance(started, Hop):
            url = self.services.callback(started.envelope)
            refusal = pausing.refused(started, is_reported=url is not None, now=self.services.now())
            if refusal is None and url is not None:
                self._pause(started, url)
                return []
            started = refusal or Diversion(started.envelope.id, (), "CannotPause")
        return send_diversion(self.services, started, record, "not paused")

    def _pause(self, hop: Hop, url: str) -> None:
        kept = pausing.kept(hop, now=self.services.now())
        place = PauseKey(kept.id, kept.generation, hop.envelope.route.position)
        if not self.paused.keep(place, kept):
            found = self.paused.load(place)
            if not isinstance(found, Envelope):
                outcome = "resumed" if isinstance(found, Tombstone) else "gone"
                self.services.telemetry.log.info("a pause that is over came again", envelope_id=kept.id, now=outcome)
                self.services.telemetry.count("Processed", by=("outcome", "diverted"))
                return
            kept = found
        about = pausing.pause_of(kept)
        if about is None:
            raise RuntimeError(f"s3://{self.services.settings.bucket}/{place.key} holds an envelope that did not pause")
        self._report(hop, kept, about, url)
        self._tell_if_possible(hop, about, place)
        self.services.telemetry.count("Processed", by=("outcome", "paused"))

    def _report(self, hop: Hop, kept: Envelope, about: PauseHeader, url: str) -> None:
        """Report the pause and see that it is taken: who is notified should find the task paused."""
        moment, ahead = self.services.now(), (kept.route.curr, *kept.route.next)
        for event in (
            reports.received(hop, now=moment),
            reports.processing(hop, now=moment),
            reports.completed(hop, ahead, now=moment, duration_ms=0.0),
        ):
            self.services.progress.report(url, event)
        receipt = self.services.required_reports.report(url, pausing.paused(hop, about))
        self.services.required_reports.flush()
        if receipt.problem is not None:
            raise receipt.problem

    def _tell_if_possible(self, hop: Hop, about: PauseHeader, place: PauseKey) -> None:
        """Tell people, but not at the price of the pause: given up for good the message would end the task as failed."""
        try:
            self._tell(hop, about, place)
        except (ClientError, BotoCoreError, NotNotifiedError):
            if hop.arrival.receive_count < hop.spec.max_receives:
                raise
            self.services.telemetry.log.exception("paused, but nobody was notified", envelope_id=place.envelope_id)

    def _tell(self, hop: Hop, about: PauseHeader, place: PauseKey) -> None:
        if self.paused.is_notified(place):
            return
        namespace, task_id = self.services.settings.namespace, place.envelope_id
        self.notices.publish(
            PauseNotice(
                message=f"Task {task_id} of the mesh {namespace} is paused at {hop.actor}: {about.prompt}",
                resume=f"asya resume {shlex.quote(task_id)} --namespace {namespace} --input '{{…}}'",
                namespace=namespace,
                id=task_id,
                actor=hop.actor,
                prompt=about.prompt,
                fields=about.fields,
                paused_at=about.paused_at,
                generation=place.generation,
                position=place.epoch,
                root_id=hop.envelope.root_id,
            )
        )
        self.paused.mark_notified(place)
