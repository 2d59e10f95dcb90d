"""One hop on its way through the handler: its frames sent, its end routed, its progress told (`protocol §5`, 6 to 12)."""

from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Delivery
from asya.messaging.hop import Hop
from asya.messaging.targets import UnknownTargetError
from asya.protocol.frame import Frame
from asya.protocol.strict_json import decode_value
from asya.reporting import reports
from asya.runtime.abi import EnvelopeView, envelope_view
from asya.runtime.call import Call, HandlerCrashed, HandlerFailed, HandlerTimedOut
from asya.sidecar import outcome, slices
from asya.sidecar.lambdas.circuit_guard import CircuitGuard, CircuitOpenError
from asya.sidecar.lambdas.services import Services


class _UnreadableError(ValueError):
    """The payload is JSON by its grammar but holds what no value can."""


class HopRun:
    """A hop at work; made for one hop and run once."""

    def __init__(self, found: Services, call: Call, hop: Hop) -> None:
        self._services = found
        self._call = call
        self._hop = hop
        self._callback = found.callback(hop.envelope)
        self._circuit = CircuitGuard(found, hop)
        self._tickets: list[Receipt] = []
        # Frames that have left, or that an earlier run of this hop may have sent.
        self._frames_sent = 0
        self._said = 0
        self._began = self._services.environment.monotonic()
        self._limit, self._by_deadline = hop.time_limit(found.now())

    def run(self) -> list[Receipt]:
        """Run the handler and send what follows from it.

        Raises:
            ClientError, BotoCoreError: if buffered frames can be neither looked up nor kept now.
        """
        self._report_start()
        last: Delivery | None = None
        how = "failed"
        try:
            with closing(self._frames()) as frames:
                for index, frame in enumerate(frames):
                    self._send_frame(frame, index)
            if not self._tickets:
                self._report_completed(None)
                last = outcome.empty(self._hop, now=self._services.now())
            how = "succeeded"
            self._circuit.record("succeeded")
        except CircuitOpenError as rejection:
            how = "rejected"
            last = self._rejected(rejection)
        except _UnreadableError as error:
            last = outcome.unreadable(self._hop, str(error), now=self._services.now())
        except UnknownTargetError as error:
            self._circuit.record("succeeded")
            last = outcome.mismatch(self._hop, error, now=self._services.now(), frames_sent=self._frames_sent)
        except HandlerTimedOut:
            how = "timed_out"
            if self._by_deadline:
                self._services.telemetry.count("SlaExpired")
            self._circuit.record("released" if self._by_deadline else "failed")
            last = self._timed_out()
        except HandlerCrashed as crash:
            how = "crashed"
            self._circuit.record("failed")
            last = outcome.crashed(self._hop, crash.error, now=self._services.now(), frames_sent=self._frames_sent)
        except HandlerFailed as failure:
            self._circuit.record("failed")
            last = self._failed(failure)
        finally:
            self._circuit.record("released")
        self._send_last(last)
        self._services.telemetry.count("Processed", by=("outcome", how))
        if how != "rejected":
            self._services.telemetry.measure("HandlerDuration", self._duration_ms, "Milliseconds")
        return self._tickets

    def _frames(self) -> Generator[Frame, None, None]:
        """The handler's frames as they come; of a buffered hop all at once, or those that an earlier run has kept.

        A fan-out is buffered whatever the actor says; that this hop made one is known before it runs only from an earlier run.
        """
        envelope, is_buffered = self._hop.envelope, self._hop.spec.frames == "buffered"
        may_be_kept = is_buffered or self._hop.arrival.receive_count > 1
        if may_be_kept and (kept := self._services.frame_buffer.load(envelope)) is not None:
            self._frames_sent = len(kept)
            yield from kept
            return
        try:
            payload = decode_value(envelope.payload)
        except ValueError as error:
            raise _UnreadableError(str(error)) from None
        self._circuit.acquire()
        # Only now: what came before may have taken its time, and the deadline has not moved.
        self._limit, self._by_deadline = self._hop.time_limit(self._services.now())
        seconds = self._limit.total_seconds()
        with closing(self._call.frames(payload, self._view, seconds)) as frames:
            first = next(frames, None)
            if first is None:
                yield from self._kept([]) if is_buffered else ()
            elif is_buffered or slices.must_leave_together(self._hop, first):
                yield from self._whole([first, *frames], keeps=is_buffered or first.opens_set)
            else:
                yield first
                yield from frames

    def _whole(self, frames: list[Frame], *, keeps: bool) -> list[Frame]:
        """Frames that leave together or not at all."""
        frames = [replace(frame, alone=len(frames) == 1) for frame in frames]
        try:
            slices.check_frames(self._hop, frames)
        except slices.SecondFrameError as error:
            raise HandlerFailed(error.error) from None
        return self._kept(frames) if keeps else frames

    def _kept(self, frames: list[Frame]) -> list[Frame]:
        """The frames, once they are kept. A target that nothing may be sent to fails the hop before anything is."""
        moment = self._services.now()
        for index, frame in enumerate(frames):
            outcome.frame(self._hop, frame, index, now=moment)
        return self._services.frame_buffer.save(self._hop.envelope, frames)

    def _send_frame(self, frame: Frame, index: int) -> None:
        delivery = outcome.frame(self._hop, frame, index, now=self._services.now())
        if not index:
            self._report_completed(frame.next)
        self._tickets.append(self._services.outbox.send(delivery))
        self._frames_sent = max(self._frames_sent, index + 1)

    def _timed_out(self) -> Delivery:
        return outcome.timed_out(
            self._hop,
            self._limit,
            by_deadline=self._by_deadline,
            now=self._services.now(),
            jitter=self._services.environment.random(),
            frames_sent=self._frames_sent,
        )

    def _failed(self, failure: HandlerFailed) -> Delivery:
        self._services.telemetry.log.warning(
            "handler failed",
            envelope_id=self._hop.envelope.id,
            attempt=self._hop.attempt,
            error_type=failure.error.type,
            error_message=failure.error.message,
        )
        return outcome.failed(
            self._hop,
            failure.error,
            now=self._services.now(),
            jitter=self._services.environment.random(),
            frames_sent=self._frames_sent,
        )

    def _rejected(self, rejection: CircuitOpenError) -> Delivery:
        return outcome.failed(
            self._hop,
            rejection.error,
            now=self._services.now(),
            jitter=self._services.environment.random(),
            reason="CircuitOpen",
        )

    def _send_last(self, delivery: Delivery | None) -> None:
        """What the hop's end asks for, if frames alone do not say it."""
        if delivery is None:
            return
        self._tickets.append(self._services.outbox.send(delivery))
        if delivery.kind == "retry":
            self._services.telemetry.count("Retried")

    def _report_start(self) -> None:
        if self._callback is not None:
            moment = self._services.now()
            self._services.progress.report(self._callback, reports.received(self._hop, now=moment))
            self._services.progress.report(self._callback, reports.processing(self._hop, now=moment))

    def _view(self) -> EnvelopeView:
        view = envelope_view(self._hop.envelope)
        view.fly = self._fly if self._callback is not None else None
        return view

    def _fly(self, message: Mapping[str, Any]) -> None:
        """Pass on what the handler says to those who look on (`protocol §7`, FLY)."""
        if self._callback is not None:
            event = reports.partial(self._hop, message, self._said, now=self._services.now())
            self._said += 1
            self._services.progress.report(self._callback, event)

    def _report_completed(self, next_actors: tuple[str, ...] | None) -> None:
        if self._callback is not None:
            event = reports.completed(self._hop, next_actors, now=self._services.now(), duration_ms=self._duration_ms)
            self._services.progress.report(self._callback, event)

    @property
    def _duration_ms(self) -> float:
        return (self._services.environment.monotonic() - self._began) * 1000
