"""The sidecar of a light actor: validates, runs the handler inline, routes what it gives (`protocol §5`)."""

import random
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from asya.aws.ticket import Ticket
from asya.lambdas.batch import Answer, Record, records
from asya.lambdas.intake import Intake, take_in
from asya.lambdas.services import Services, now, services
from asya.protocol.envelope import Envelope
from asya.protocol.strict_json import decode_value
from asya.routing import outcome, reports
from asya.routing.delivery import Delivery, Diversion
from asya.routing.hop import Hop
from asya.routing.targets import UnknownTargetError
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import Call, HandlerCrashed, HandlerFailed, HandlerTimedOut
from asya.runtime.load import LoadError, load
from asya.runtime.signatures import adapter


def handle(event: Mapping[str, Any], _context: object) -> Answer:
    """Lambda's entry point: one batch of the actor's queue."""
    return _sidecar().process(event)


@cache
def _sidecar() -> "Sidecar":
    return build(services())


def build(found: Services) -> "Sidecar":
    """The sidecar of this function's actor.

    Raises:
        LoadError: naming the handler and what is wrong with it.
    """
    spec = found.settings.table.actors[found.settings.actor]
    if spec.handler is None:
        raise LoadError(f"actor {found.settings.actor!r} is of kind {spec.kind!r} and has no handler")
    function = load(spec.handler)
    return Sidecar(found, Call(function, adapter(spec.handler, function), spec.fan_out_lists))


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One actor's sidecar, with its handler loaded."""

    services: Services
    call: Call

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
        items = records(event)
        telemetry = self.services.telemetry
        telemetry.count("Received", len(items))
        try:
            intake = take_in(self.services, items)
            return self.services.worker.work(items, lambda record: self._handle(intake, record))
        finally:
            self.services.progress.flush()
            telemetry.flush()

    def _handle(self, intake: Intake, record: Record) -> list[Ticket]:
        """One message: what it caused to be sent."""
        telemetry = self.services.telemetry
        telemetry.measure("MessageSize", record.arrival.size, "Bytes")
        lag = (now() - record.arrival.sent_at).total_seconds() * 1000
        telemetry.measure("HopLatency", max(0.0, lag), "Milliseconds")
        started = intake.start(record)
        if isinstance(started, Diversion):
            telemetry.count("Processed", by=("outcome", "diverted"))
            telemetry.log.warning(
                "handler not called", why=started.why, envelope_id=started.envelope_id, message_id=record.message_id
            )
            return [self.services.outbox.send(delivery) for delivery in started.deliveries]
        return _Run(self.services, self.call, started).to_its_end()


class _Run:
    """One hop on its way through the handler."""

    def __init__(self, found: Services, call: Call, hop: Hop) -> None:
        self._services = found
        self._call = call
        self._hop = hop
        self._callback = found.callback(hop.envelope)
        self._tickets: list[Ticket] = []
        self._began = time.monotonic()

    def to_its_end(self) -> list[Ticket]:
        """Run the handler and send what follows from it."""
        hop, telemetry = self._hop, self._services.telemetry
        self._report_start()
        limit, by_deadline = hop.time_limit(now())
        how = "succeeded"
        try:
            payload = decode_value(hop.envelope.payload)
        except ValueError as error:
            self._send(outcome.unreadable(hop, str(error), now=now()))
            return self._tickets
        try:
            with closing(self._call.frames(payload, lambda: _view(hop.envelope), limit.total_seconds())) as frames:
                for frame in frames:
                    delivery = outcome.frame(hop, frame, len(self._tickets), now=now())
                    self._report_completed(frame.next)
                    self._send(delivery)
            if not self._tickets:
                self._report_completed(None)
                self._send(outcome.empty(hop, now=now()))
        except UnknownTargetError as error:
            how = "failed"
            self._send(outcome.mismatch(hop, error, now=now(), frames_sent=len(self._tickets)))
        except HandlerTimedOut:
            how = "timed_out"
            self._send(
                outcome.timed_out(
                    hop,
                    limit,
                    by_deadline=by_deadline,
                    now=now(),
                    jitter=random.random(),
                    frames_sent=len(self._tickets),
                )
            )
        except HandlerCrashed as crash:
            how = "crashed"
            self._send(outcome.crashed(hop, crash.error, now=now(), frames_sent=len(self._tickets)))
        except HandlerFailed as failure:
            how = "failed"
            self._fail(failure)
        telemetry.count("Processed", by=("outcome", how))
        telemetry.measure("HandlerDuration", self._duration_ms, "Milliseconds")
        return self._tickets

    def _fail(self, failure: HandlerFailed) -> None:
        hop = self._hop
        self._services.telemetry.log.warning(
            "handler failed",
            envelope_id=hop.envelope.id,
            attempt=hop.attempt,
            error_type=failure.error.type,
            error_message=failure.error.message,
        )
        delivery = outcome.failed(
            hop,
            failure.error,
            now=now(),
            jitter=random.random(),
            frames_sent=len(self._tickets),
        )
        if delivery.kind == "retry":
            self._services.telemetry.count("Retried")
        self._send(delivery)

    def _send(self, delivery: Delivery) -> None:
        self._tickets.append(self._services.outbox.send(delivery))

    def _report_start(self) -> None:
        if self._callback is not None:
            moment = now()
            self._services.progress.report(self._callback, reports.received(self._hop, now=moment))
            self._services.progress.report(self._callback, reports.processing(self._hop, now=moment))

    def _report_completed(self, next_actors: tuple[str, ...] | None) -> None:
        """Once, with the first frame."""
        if self._callback is not None and not self._tickets:
            event = reports.completed(self._hop, next_actors, now=now(), duration_ms=self._duration_ms)
            self._services.progress.report(self._callback, event)

    @property
    def _duration_ms(self) -> float:
        return (time.monotonic() - self._began) * 1000


def _view(envelope: Envelope) -> EnvelopeView:
    status: dict[str, Any] = msgspec.to_builtins(envelope.status) if envelope.status is not None else {}
    return EnvelopeView(
        id=envelope.id,
        parent_id=envelope.parent_id or "",
        prev=envelope.route.prev,
        curr=envelope.route.curr,
        next=list(envelope.route.next),
        headers={name: decode_value(raw) for name, raw in envelope.headers.items()},
        status=status | {name: decode_value(raw) for name, raw in envelope.status_extra.items()},
    )
