"""Lambda entry points of x-sink, x-sump, x-checkpoint and end actors, with the two small actors themselves."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from asya.ends import ending
from asya.ends.aws.results import ResultIndex, Results
from asya.ends.lambdas.ends import end_results
from asya.ends.lambdas.sink_and_sump import SinkActor, SumpActor
from asya.function.aws import clients
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery, Diversion
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.light.envelope_view import envelope_view
from asya.light.lambdas.secret_calls import load_handler, with_secrets
from asya.light.lambdas.sidecar import own_actor
from asya.protocol import names
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope, Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.keys import checkpoint_key
from asya.protocol.status import Reason
from asya.protocol.strict_json import decode_value
from asya.protocol.times import format_duration
from asya.runtime.call import HandlerCrashed, HandlerFailed, HandlerInvoker, HandlerTimedOut, Invoker
from asya.runtime.load import LoadError
from asya.runtime.modes import EndMode, EnvelopeMode
from asya.sidecar import arrival
from asya.sidecar.lambdas.crew_hops import next_delivery, process_batch, report_hop, send_diversion
from asya.sidecar.lambdas.entry_point import queue_entry_point
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals, trace_end
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class CheckpointActor:
    """Processes the messages of x-checkpoint; its only frame is the envelope as received."""

    services: Services
    results: Results

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Store one envelope, then route it on.

        Raises:
            ClientError, BotoCoreError: the copy cannot be written, so the message stays on the queue.
        """
        telemetry = self.services.telemetry
        started = intake.start(record)
        if isinstance(started, Diversion):
            return send_diversion(self.services, started, record, "no checkpoint made")
        began = self.services.environment.monotonic()
        namespace = self.services.settings.namespace
        self.results.write_envelope(checkpoint_key(started.envelope), started.envelope, namespace)
        delivery = next_delivery(self.services, started, Frame(None))
        duration_ms = (self.services.environment.monotonic() - began) * 1000
        report_hop(self.services, started, duration_ms=duration_ms)
        telemetry.count("Processed", by=("outcome", "failed" if delivery.kind == "sump" else "succeeded"))
        return [self.services.outbox.send(delivery)]


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
            received = record.arrival.envelope()
            envelope = self.services.claim_check.redeem(received)
            payload = self._payload(envelope)
        except ParseError as error:
            diversion = arrival.parse_failure(record.arrival, error, now=moment)
            return [self.services.outbox.send(delivery) for delivery in diversion.deliveries]
        failure = self._call(envelope, payload)
        ended = ending.with_end_status(
            received, actor=self.services.settings.actor, sent_at=record.arrival.sent_at, now=self.services.now()
        )
        trace_end(self.services, ended, moment, error=failure[1].type if failure is not None else None)
        if failure is not None:
            return self._failed(received, record, *failure)
        self.services.telemetry.count("Processed", by=("outcome", "succeeded"))
        return [self.services.outbox.send(Delivery(names.SINK, encode(ended), "sink"))]

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
        self.services.telemetry.count("Processed", by=("outcome", "failed"))
        actor = self.services.settings.actor
        delivery = ending.end_actor_failure(
            envelope, reason, error, actor=actor, sent_at=record.arrival.sent_at, now=self.services.now()
        )
        return [self.services.outbox.send(delivery)]


def build_sink(services: Services) -> SinkActor:
    """Build x-sink."""
    results = end_results(services)
    return SinkActor(services, results, ResultIndex(results))


def build_sump(services: Services) -> SumpActor:
    """Build x-sump."""
    results = end_results(services)
    return SumpActor(services, results, ResultIndex(results))


def build_checkpoint(services: Services) -> CheckpointActor:
    """Build x-checkpoint. The gateway reads checkpoints for replays, from the S3 of AWS."""
    return CheckpointActor(services, Results(clients.s3(), services.settings.results_uri))


def build_end_actor(services: Services) -> EndActor:
    """Build the user's end actor of this function.

    Raises:
        LoadError: the handler cannot be loaded, or the actor's options do not suit an end actor.
        SecretError: a secret of the actor cannot be read.
    """
    spec, name = own_actor(services)
    handler = load_handler(services, name)
    if spec.handler_mode == "payload" or spec.validate:
        raise LoadError(f"end actor {services.settings.actor!r} needs handler_mode: envelope and validate: false")
    mode = EndMode(EnvelopeMode(spec.handler_mode))
    call = HandlerInvoker(handler, mode, timer=services.environment)
    return EndActor(services, with_secrets(services, call), spec.timeout)


sink = queue_entry_point(build_sink)
sump = queue_entry_point(build_sump)
checkpoint = queue_entry_point(build_checkpoint)
end_actor = queue_entry_point(build_end_actor)
