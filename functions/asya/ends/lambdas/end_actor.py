"""End actors: call the handler of the user with ended envelopes (`protocol §11`)."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from asya.ends import ending
from asya.function.aws.receipt import Receipt
from asya.function.hop import Arrival, Delivery
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.light.envelope_view import envelope_view
from asya.protocol import names, states
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.status import Reason
from asya.protocol.strict_json import decode_value
from asya.protocol.times import format_duration
from asya.runtime.call import HandlerCrashed, HandlerFailed, HandlerTimedOut, Invoker
from asya.sidecar import arrival
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals, trace_end
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class EndActor:
    """Calls the handler with each envelope, and sends the envelope to x-sink, or to x-sump if the handler fails.

    These claim and report its end and notify the set of a slice, so that an end is decided once. The envelope leaves with
    the reference to a payload behind a claim check.
    """

    services: Services
    call: Invoker
    timeout: float

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        items = self.services.admission.admit(records(event))
        telemetry = self.services.telemetry
        record_arrivals(self.services, items)
        try:
            return self.services.worker.process(items, self._handle)
        finally:
            telemetry.flush()

    def _handle(self, record: Record) -> list[Receipt]:
        moment = self.services.now()
        try:
            received = self._received(record.arrival)
            envelope = self.services.claim_check.redeem(received)
            payload = self._payload(envelope)
        except ParseError as error:
            diversion = arrival.parse_failure(record.arrival, error, now=moment, with_key=self.services.keys.enter)
            return [self.services.outbox.send(delivery) for delivery in diversion.deliveries]
        failure = self._call(envelope, payload)
        ended = ending.with_end_status(
            received, actor=self.services.settings.actor, sent_at=record.arrival.sent_at, now=self.services.now()
        )
        trace_end(self.services, ended, moment, error=failure[1].type if failure is not None else None)
        if failure is not None:
            return self._failed(received, record, *failure)
        self.services.telemetry.count("Processed", by=("outcome", states.SUCCEEDED))
        return [self.services.outbox.send(Delivery(names.SINK, encode(ended), "sink"))]

    def _received(self, arrival: Arrival) -> Envelope:
        """The envelope of a message, with the key of the task that it starts.

        Raises:
            ParseError: the message is not a valid envelope, or its sender may not start a task under its id.
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        envelope = arrival.envelope()
        if envelope.status is not None or arrival.is_new:
            return envelope
        if (refusal := self.services.admission.refusal(envelope, arrival)) is not None:
            raise refusal
        return self.services.keys.enter(envelope, arrival.message_id)

    def _call(self, envelope: Envelope, payload: object) -> tuple[Reason, ErrorInfo] | None:
        """Call the handler; returns why it failed."""
        try:
            with closing(self.call.frames(payload, lambda: envelope_view(envelope), self.timeout)) as frames:
                for _ in frames:
                    pass  # a generator runs to its end, and its frames are ignored
        except HandlerTimedOut:
            message = f"Runtime did not respond within {format_duration(self.timeout)}"
            return "Timeout", ErrorInfo(type="Timeout", message=message)
        except HandlerCrashed as crash:
            return "RuntimeCrash", crash.error
        except HandlerFailed as failure:
            return "RuntimeError", failure.error
        return None

    def _payload(self, envelope: Envelope) -> object:
        try:
            return decode_value(envelope.payload)
        except ValueError as error:
            raise ParseError(f"payload: {error}", envelope.id) from None

    def _failed(self, envelope: Envelope, record: Record, reason: Reason, error: ErrorInfo) -> list[Receipt]:
        self.services.telemetry.count("Processed", by=("outcome", states.FAILED))
        actor = self.services.settings.actor
        delivery = ending.end_actor_failure(
            envelope, reason, error, actor=actor, sent_at=record.arrival.sent_at, now=self.services.now()
        )
        return [self.services.outbox.send(delivery)]
