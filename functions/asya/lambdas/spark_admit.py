"""The sidecar of a heavy actor: its envelopes become pending, and the dispatcher is asked to look (`protocol §10`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.aws.ticket import Ticket
from asya.lambdas.batch import Answer, Record, records
from asya.lambdas.intake import Intake, take_in
from asya.lambdas.metrics import note_arrivals, note_diversion
from asya.lambdas.spark_services import SparkServices, member_of, spark_services
from asya.protocol.codec import encode
from asya.routing import reports
from asya.routing.delivery import Diversion
from asya.routing.hop import Hop


def handle(event: Mapping[str, Any], _context: object) -> Answer:
    """Lambda's entry point: one batch of the actor's queue."""
    return Admission(spark_services()).process(event)


@dataclass(frozen=True, slots=True)
class Admission:
    """Takes batches of one heavy actor."""

    services: SparkServices

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch: everything becomes pending, then one request for all, then the acks."""
        base = self.services.base
        items = records(event)
        note_arrivals(base, items)
        intake = take_in(base, items)
        taken = {record.message_id: self._take(intake, record) for record in items}
        request = self._request() if any(isinstance(one, Hop) for one in taken.values()) else None
        try:
            return base.worker.work(items, lambda record: self._finish(taken[record.message_id], request))
        finally:
            base.progress.flush()
            base.telemetry.flush()

    def _take(self, intake: Intake, record: Record) -> Hop | Diversion | Exception:
        """Steps 1 to 6 for one message, and its place among the pending; an error keeps it on the queue."""
        base = self.services.base
        try:
            hop = intake.start(record)
            if isinstance(hop, Diversion):
                return hop
            moment = base.now()
            member = member_of(hop, base.callback(hop.envelope), admitted_at=moment)
            if not self.services.pending.admit(hop.actor, member, encode(hop.envelope), now=moment):
                base.telemetry.log.info("pending already, or done", envelope_id=member.id, attempt=member.attempt)
        except Exception as error:  # noqa: BLE001 - raised again when it is this message's turn to be acked
            return error
        return hop

    def _request(self) -> Exception | None:
        """Ask the dispatcher to look, also when everything was pending before: that request may have been lost."""
        settings = self.services.settings
        window = settings.table.actors[settings.actor].batch.window
        try:
            self.services.requests.ensure(settings.actor, window, now=self.services.now())
        except Exception as error:  # noqa: BLE001 - keeps the messages on the queue, as above
            return error
        return None

    def _finish(self, taken: Hop | Diversion | Exception, request: Exception | None) -> list[Ticket]:
        """What is left to do before the ack.

        Raises:
            Exception: what keeps the message.
        """
        base = self.services.base
        if isinstance(taken, Exception):
            raise taken
        if isinstance(taken, Diversion):
            note_diversion(base, taken.why)
            base.telemetry.log.warning("not admitted", why=taken.why, envelope_id=taken.envelope_id)
            return [base.outbox.send(delivery) for delivery in taken.deliveries]
        if request is not None:
            raise request
        callback = base.callback(taken.envelope)
        if callback is not None:
            base.progress.report(callback, reports.received(taken, now=base.now()))
        base.telemetry.count("Processed", by=("outcome", "pending"))
        return []
