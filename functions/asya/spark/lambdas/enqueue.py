"""The sidecar of a heavy actor: its envelopes become pending, and the dispatcher is asked to look (`protocol §10`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Diversion
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import Answer, Record, records
from asya.protocol.codec import encode
from asya.protocol.job_runs import Member
from asya.reporting import reports
from asya.sidecar.lambdas.intake import Intake, receive_batch
from asya.sidecar.lambdas.metrics import record_arrivals, record_diversion
from asya.spark.lambdas.services import SparkServices, member_of


@dataclass(frozen=True, slots=True)
class _Ready:
    """A hop that may wait for its run."""

    hop: Hop
    member: Member
    body: bytes

    @property
    def identity(self) -> tuple[str, int, int, int]:
        """What makes it this attempt and no other."""
        return self.member.id, self.member.generation, self.member.position, self.member.attempt


_Entry = _Ready | Diversion | Exception


@dataclass(frozen=True, slots=True)
class Enqueuer:
    """Takes batches of one heavy actor."""

    services: SparkServices

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch: everything becomes pending, then one request for all, then the acks."""
        base = self.services.base
        items = records(event)
        record_arrivals(base, items)
        intake = receive_batch(base, items)
        taken = {record.message_id: self._started(intake, record) for record in items}
        ready = {message_id: one for message_id, one in taken.items() if isinstance(one, _Ready)}
        taken |= self._make_pending(ready)
        request = self._request() if ready else None
        try:
            return base.worker.process(items, lambda record: self._finish(taken[record.message_id], request))
        finally:
            base.progress.flush()
            base.telemetry.flush()

    def _started(self, intake: Intake, record: Record) -> _Entry:
        """Steps 1 to 6 for one message; an error keeps it on the queue."""
        base = self.services.base
        try:
            hop = intake.start(record)
            if isinstance(hop, Diversion):
                return hop
            member = member_of(hop, base.callback(hop.envelope), admitted_at=base.now())
            return _Ready(hop, member, encode(hop.envelope))
        except Exception as error:  # noqa: BLE001 - raised again when it is this message's turn to be acked
            return error

    def _make_pending(self, ready: Mapping[str, _Ready]) -> dict[str, Exception]:
        """Have all of them wait for a run; the problems of those that do not, by message id."""
        base = self.services.base
        # The same attempt may have come twice in one batch: it waits once, and both messages are done with it.
        once = {one.identity: one for one in ready.values()}
        envelopes = [(one.member, one.body) for one in once.values()]
        enqueued = self.services.pending.enqueue(base.settings.actor, envelopes, now=base.now())
        answers = dict(zip(once, enqueued, strict=True))
        for identity, answer in answers.items():
            if answer is False:
                base.telemetry.log.info("pending already, or done", envelope_id=identity[0], attempt=identity[-1])
        problems = {message_id: answers[one.identity] for message_id, one in ready.items()}
        return {message_id: problem for message_id, problem in problems.items() if isinstance(problem, Exception)}

    def _request(self) -> Exception | None:
        """Ask the dispatcher to look, also when everything was pending before: that request may have been lost."""
        settings = self.services.settings
        window = settings.table.actors[settings.actor].batch.window
        try:
            self.services.requests.ensure(settings.actor, window, now=self.services.now())
        except Exception as error:  # noqa: BLE001 - keeps the messages on the queue, as above
            return error
        return None

    def _finish(self, taken: _Entry, request: Exception | None) -> list[Receipt]:
        """What is left to do before the ack.

        Raises:
            Exception: what keeps the message.
        """
        base = self.services.base
        if isinstance(taken, Exception):
            raise taken
        if isinstance(taken, Diversion):
            record_diversion(base, taken.why)
            base.telemetry.log.warning("not admitted", why=taken.why, envelope_id=taken.envelope_id)
            return [base.outbox.send(delivery) for delivery in taken.deliveries]
        if request is not None:
            raise request
        if taken.member.callback is not None:
            base.progress.report(taken.member.callback, reports.received(taken.hop, now=base.now()))
        base.telemetry.count("Processed", by=("outcome", "pending"))
        return []
