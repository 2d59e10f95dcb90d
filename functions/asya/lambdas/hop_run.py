"""One hop on its way through the handler: its frames sent, its end routed, its progress told (`protocol §5`, 6 to 12)."""

import random
import time
from collections.abc import Generator
from contextlib import closing
from datetime import timedelta

from asya.aws.ticket import Ticket
from asya.lambdas.services import Services, now
from asya.lambdas.views import envelope_view
from asya.protocol.frame import Frame
from asya.protocol.strict_json import decode_value
from asya.routing import outcome, reports, slices
from asya.routing.delivery import Delivery
from asya.routing.hop import Hop
from asya.routing.targets import UnknownTargetError
from asya.runtime.call import Call, HandlerCrashed, HandlerFailed, HandlerTimedOut


class _UnreadableError(ValueError):
    """The payload is JSON by its grammar but holds what no value can."""


class HopRun:
    """A hop at work; made for one hop and run once."""

    def __init__(self, found: Services, call: Call, hop: Hop) -> None:
        self._services = found
        self._call = call
        self._hop = hop
        self._callback = found.callback(hop.envelope)
        self._tickets: list[Ticket] = []
        # Frames that have left, or that an earlier run of this hop may have sent.
        self._frames_sent = 0
        self._began = time.monotonic()

    def to_its_end(self) -> list[Ticket]:
        """Run the handler and send what follows from it.

        Raises:
            ClientError, BotoCoreError: if buffered frames can be neither looked up nor kept now.
        """
        self._report_start()
        limit, by_deadline = self._hop.time_limit(now())
        last: Delivery | None = None
        how = "failed"
        try:
            with closing(self._frames(limit)) as frames:
                for index, frame in enumerate(frames):
                    self._send_frame(frame, index)
            if not self._tickets:
                self._report_completed(None)
                last = outcome.empty(self._hop, now=now())
            how = "succeeded"
        except _UnreadableError as error:
            last = outcome.unreadable(self._hop, str(error), now=now())
        except UnknownTargetError as error:
            last = outcome.mismatch(self._hop, error, now=now(), frames_sent=self._frames_sent)
        except HandlerTimedOut:
            how = "timed_out"
            last = self._timed_out(limit, by_deadline)
        except HandlerCrashed as crash:
            how = "crashed"
            last = outcome.crashed(self._hop, crash.error, now=now(), frames_sent=self._frames_sent)
        except HandlerFailed as failure:
            last = self._failed(failure)
        self._send_last(last)
        self._services.telemetry.count("Processed", by=("outcome", how))
        self._services.telemetry.measure("HandlerDuration", self._duration_ms, "Milliseconds")
        return self._tickets

    def _frames(self, limit: timedelta) -> Generator[Frame, None, None]:
        """The handler's frames as they come; of a buffered hop all at once, or those that an earlier run has kept.

        A fan-out is buffered whatever the actor says; that this hop made one is known before it runs only from an earlier run.
        """
        envelope, is_buffered = self._hop.envelope, self._hop.spec.frames == "buffered"
        may_be_kept = is_buffered or self._hop.arrival.receive_count > 1
        if may_be_kept and (kept := self._services.kept_frames.load(envelope)) is not None:
            self._frames_sent = len(kept)
            yield from kept
            return
        try:
            payload = decode_value(envelope.payload)
        except ValueError as error:
            raise _UnreadableError(str(error)) from None
        with closing(self._call.frames(payload, lambda: envelope_view(envelope), limit.total_seconds())) as frames:
            first = next(frames, None)
            if first is None:
                yield from self._kept([]) if is_buffered else ()
            elif is_buffered or slices.is_whole(self._hop, first):
                yield from self._whole([first, *frames], keeps=is_buffered or first.opens_set)
            else:
                yield first
                yield from frames

    def _whole(self, frames: list[Frame], *, keeps: bool) -> list[Frame]:
        """Frames that leave together or not at all."""
        try:
            slices.check_frames(self._hop, frames)
        except slices.SecondFrameError as error:
            raise HandlerFailed(error.error) from None
        return self._kept(frames) if keeps else frames

    def _kept(self, frames: list[Frame]) -> list[Frame]:
        """The frames, once they are kept. A target that nothing may be sent to fails the hop before anything is."""
        moment = now()
        for index, frame in enumerate(frames):
            outcome.frame(self._hop, frame, index, now=moment)
        return self._services.kept_frames.keep(self._hop.envelope, frames)

    def _send_frame(self, frame: Frame, index: int) -> None:
        delivery = outcome.frame(self._hop, frame, index, now=now())
        if not index:
            self._report_completed(frame.next)
        self._tickets.append(self._services.outbox.send(delivery))
        self._frames_sent = max(self._frames_sent, index + 1)

    def _timed_out(self, limit: timedelta, by_deadline: bool) -> Delivery:
        return outcome.timed_out(
            self._hop,
            limit,
            by_deadline=by_deadline,
            now=now(),
            jitter=random.random(),
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
            self._hop, failure.error, now=now(), jitter=random.random(), frames_sent=self._frames_sent
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
            moment = now()
            self._services.progress.report(self._callback, reports.received(self._hop, now=moment))
            self._services.progress.report(self._callback, reports.processing(self._hop, now=moment))

    def _report_completed(self, next_actors: tuple[str, ...] | None) -> None:
        if self._callback is not None:
            event = reports.completed(self._hop, next_actors, now=now(), duration_ms=self._duration_ms)
            self._services.progress.report(self._callback, event)

    @property
    def _duration_ms(self) -> float:
        return (time.monotonic() - self._began) * 1000
