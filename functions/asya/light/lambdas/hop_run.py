"""Runs one hop: calls the handler behind its circuit breaker, and routes its end (`protocol §5`, 6 to 12; `§8`)."""

from collections.abc import Generator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from asya.capabilities.legacy.options import numbers_children
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery, Hop
from asya.function.nack import OutdatedError
from asya.function.targets import TargetError, with_versions
from asya.light.envelope_view import envelope_view
from asya.protocol import states
from asya.protocol.envelope import Frame
from asya.protocol.errors import ErrorInfo, TaskProblem
from asya.protocol.events import TaskEvent
from asya.protocol.times import format_time
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerCrashed, HandlerFailed, HandlerTimedOut, Invoker
from asya.sidecar import outcome, slices
from asya.sidecar.aws.circuit_breaker import CallResult
from asya.sidecar.circuit_breaker import Permit, Rejection
from asya.sidecar.lambdas.metrics_and_spans import trace_hop
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports

CIRCUIT_OPEN = "CircuitOpen"


class CircuitOpenError(Exception):
    """The circuit breaker rejects the handler call.

    Attributes:
        error: the error of the hop; retry rules match it by the type `CircuitOpen`.
        problem: what the task shows while the envelope waits. It names the type of the error that opened the circuit, and not
            its message: that of another owner's task may hold data.
        until: when the circuit may permit a call.
    """

    def __init__(self, actor: str, rejection: Rejection, until: datetime) -> None:
        next_call = format_time(until)
        message = f"{actor} failed too often recently; the next call is allowed at {next_call}"
        super().__init__(message)
        self.error = ErrorInfo(type=CIRCUIT_OPEN, message=message)
        since = f" since {_time(rejection.opened_at)}" if rejection.opened_at is not None else ""
        cause = f", after {rejection.error.partition(':')[0]}" if rejection.error else ""
        self.problem = TaskProblem(
            CIRCUIT_OPEN, f"the circuit of {actor} is open{since}{cause}; the next call is allowed at {next_call}"
        )
        self.until = until


class CircuitGuard:
    """Acquires the permit for the handler call of one hop, and records its result."""

    def __init__(self, services: Services, hop: Hop) -> None:
        self._services = services
        self._hop = hop
        self._permit: Permit | None = None

    def acquire(self) -> None:
        """Request the permit to call the handler.

        Raises:
            CircuitOpenError: the circuit is open.
        """
        breaker = self._services.breaker
        if breaker is None:
            return
        moment = self._services.now()
        answer = breaker.acquire(_caller(self._hop), moment)
        if isinstance(answer, Rejection):
            # A probe usually ends long before its time limit, so its end is no measure for a delay.
            longest = moment + timedelta(seconds=breaker.limits.open_for)
            raise CircuitOpenError(self._hop.actor, answer, min(datetime.fromtimestamp(answer.until, UTC), longest))
        if answer.is_probe:
            self._services.telemetry.log.info("circuit half-open: probing", envelope_id=self._hop.envelope.id)
        self._permit = answer

    def record(self, result: CallResult, error: ErrorInfo | None = None) -> None:
        """Record the result of the call; only the first result counts.

        Args:
            result: how the call ended.
            error: that of a failed call.
        """
        breaker, permit, self._permit = self._services.breaker, self._permit, None
        if breaker is None or permit is None:
            return
        text = f"{error.type}: {error.message}" if error is not None else ""
        circuit = breaker.record(permit, result, self._services.now(), text)
        if circuit is None:
            return
        log, envelope_id = self._services.telemetry.log, self._hop.envelope.id
        if circuit.open_until is None:
            log.warning("circuit closed", envelope_id=envelope_id)
        else:
            next_call = _time(circuit.open_until)
            log.warning("circuit open", envelope_id=envelope_id, error_message=circuit.error, next_call_at=next_call)


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def _caller(hop: Hop) -> str:
    envelope = hop.envelope
    return f"{envelope.id}#{envelope.generation}#{envelope.route.position}#{hop.attempt}"


class _UnreadableError(ValueError):
    """The payload is valid JSON, but holds a number out of range."""


class HopRun:
    """The run of one hop; used once.

    Attributes:
        last_report: its last progress report; None if nothing is reported for this envelope.
        is_delayed: whether the circuit breaker delays the envelope, so the same attempt comes again.
    """

    def __init__(self, services: Services, call: Invoker, hop: Hop) -> None:
        self._services = services
        self._call = call
        self._hop = hop
        # The hop of a late copy was reported when its frame 0 left.
        self._report_url = None if hop.is_late_copy else services.report_url(hop.envelope)
        self._circuit = CircuitGuard(services, hop)
        self._receipts: list[Receipt] = []
        # Frames that have left, also those that an earlier run of this hop may have sent.
        self._frames_sent = int(hop.is_late_copy)
        self._has_stored_frames = False
        self._partial_count = 0
        self.last_report: TaskEvent | None = None
        self.is_delayed = False
        # A fan-out is always buffered. A first delivery can find its frames only if the message was sent twice. It looks
        # for them if it fails, and else reads no object.
        self._is_buffered = hop.spec.frames == "buffered"
        self._looks_first = self._is_buffered or hop.arrival.receive_count > 1 or hop.is_late_copy
        self._started_at = self._services.environment.monotonic()
        self._began_at = services.now()
        self._limit, self._by_deadline = hop.time_limit(services.now())

    def run(self) -> list[Receipt]:
        """Run the handler and send its frames, or the envelope that ends the hop.

        Raises:
            ClientError, BotoCoreError: buffered frames can be neither read nor stored, or the ids of children not claimed.
            OutdatedError: a stored frame has a target that this version of the mesh does not know.
        """
        self._report_start()
        final: Delivery | None = None
        result = states.FAILED
        error: str | None = None  # its type, for the trace
        try:
            with closing(self._frames()) as frames:
                for index, frame in enumerate(frames):
                    self._send_frame(frame, index)
            if not self._receipts and not self._hop.is_late_copy:
                self._report_completed(None)
                final = outcome.empty(self._hop, now=self._services.now())
            result = states.SUCCEEDED
            self._circuit.record(states.SUCCEEDED)
        except CircuitOpenError as rejection:
            result, error = "rejected", "CircuitOpen"
            final = self._rejection(rejection)
        except _UnreadableError as problem:
            error = "ParseError"
            final = outcome.unreadable(self._hop, str(problem), now=self._services.now(), frames_sent=self._frames_sent)
        except (TargetError, slices.TooManyChildrenError) as problem:
            self._circuit.record(states.SUCCEEDED)
            final, error = self._refusal(problem)
        except HandlerTimedOut:
            result, error = states.TIMED_OUT, "Timeout"
            if self._by_deadline:
                self._services.telemetry.count("SlaExpired")
            final = self._timeout()
            limit = ErrorInfo(type="Timeout", message=f"no answer within {self._limit.total_seconds():g} s")
            self._circuit.record("released" if self._by_deadline else states.FAILED, limit)
        except HandlerCrashed as crash:
            result, error = states.CRASHED, crash.error.type
            self._circuit.record(states.FAILED, crash.error)
            final = outcome.crashed(self._hop, crash.error, now=self._services.now(), frames_sent=self._frames_sent)
        except HandlerFailed as failure:
            error = failure.error.type
            self._circuit.record(states.FAILED, failure.error)
            final = self._failure(failure)
        finally:
            self._circuit.record("released")
        is_delayed = final is not None and final.kind == "later"
        if result != states.SUCCEEDED and not is_delayed and self._send_stored_frames():
            final, result, error = None, states.SUCCEEDED, None
        self._send_final(final)
        trace_hop(self._services, self._hop, self._began_at, error=error)
        self._services.telemetry.count("Processed", by=("outcome", result))
        if result != "rejected":
            self._services.telemetry.measure("HandlerDuration", self._duration_ms, "Milliseconds")
        return self._receipts

    def _frames(self) -> Generator[Frame, None, None]:
        """The handler's frames: as they come, all at once if buffered, or those stored by an earlier run."""
        envelope, is_buffered = self._hop.envelope, self._is_buffered
        if self._looks_first and (stored := self._stored_frames()) is not None:
            self._frames_sent = len(stored)
            self._has_stored_frames = True
            yield from stored
            return
        try:
            payload = self._call.read(envelope.payload)
        except ValueError as error:
            raise _UnreadableError(str(error)) from None
        self._circuit.acquire()
        # The limit counts from the call: the steps before it take time, and the deadline is fixed.
        self._limit, self._by_deadline = self._hop.time_limit(self._services.now())
        seconds = self._limit.total_seconds()
        with closing(self._call.frames(payload.value, self._view, seconds, payload.digits)) as given:
            frames = slices.bounded(self._hop, given)
            first = next(frames, None)
            if self._hop.is_late_copy and first is not None and first.opens_set:
                return  # the first run did not open this set: its list would be stored
            if first is None:
                yield from self._store([]) if is_buffered else ()
            elif is_buffered or slices.must_leave_together(self._hop, first):
                yield from self._check_all([first, *frames], stores=is_buffered or first.opens_set)
            else:
                yield first
                yield from frames

    def _send_stored_frames(self) -> bool:
        """Send the frames of another copy of this message, which a failed run would contradict; False without any.

        A message may be sent twice, so this may be the first delivery of a hop that has already fanned out.
        """
        if self._looks_first or self._receipts:
            return False
        frames = self._stored_frames()
        if frames is None:
            return False
        self._has_stored_frames = True
        for index, frame in enumerate(frames):
            self._send_frame(frame, index)
        return True

    def _stored_frames(self) -> list[Frame] | None:
        """The frames that an earlier run of this hop has stored."""
        return self._services.frame_buffer.load(self._hop.envelope)

    def _check_all(self, frames: list[Frame], *, stores: bool) -> list[Frame]:
        """Check frames that must leave together, and store them if asked to."""
        frames = [replace(frame, alone=len(frames) == 1) for frame in frames]
        try:
            slices.check_frames(self._hop, frames)
        except slices.SecondFrameError as error:
            raise HandlerFailed(error.error) from None
        return self._store(frames) if stores else frames

    def _store(self, frames: list[Frame]) -> list[Frame]:
        """Store the frames. A frame with an unknown target fails the hop before any frame leaves."""
        moment = self._services.now()
        for index, frame in enumerate(frames):
            outcome.frame(self._hop, frame, index, now=moment)
        return self._services.frame_buffer.save(self._hop.envelope, frames)

    def _send_frame(self, frame: Frame, index: int) -> None:
        if self._hop.is_late_copy and not index:
            return
        try:
            numbered = index > 0 and self._numbers_children
            delivery = outcome.frame(self._hop, frame, index, now=self._services.now(), numbered=numbered)
        except TargetError as problem:
            if not self._has_stored_frames:
                raise
            # The version that stored the list knew the target. Whether its frame 0 has left, nobody knows: an end
            # could contradict it, and a failed child could be all that is left of the id.
            text = with_versions(f"{problem}, but a stored frame goes there", self._hop.envelope, self._hop.mesh)
            raise OutdatedError(text) from problem
        if not index:
            self._report_completed(frame.next)
        self._receipts.append(self._services.outbox.send(delivery))
        self._frames_sent = max(self._frames_sent, index + 1)

    @cached_property
    def _numbers_children(self) -> bool:
        """Whether children get the numbered ids of the envelope: with its second frame the hop claims them."""
        return numbers_children(self._hop.spec) and self._services.admission.claim_numbered_ids(self._hop.envelope)

    def _refusal(self, problem: TargetError | slices.TooManyChildrenError) -> tuple[Delivery, str]:
        """The end of a hop whose frames may not leave, and the type of its error."""
        now, sent = self._services.now(), self._frames_sent
        if isinstance(problem, TargetError):
            return outcome.mismatch(self._hop, problem, now=now, frames_sent=sent), "RouteMismatch"
        return outcome.too_many_children(self._hop, problem, now=now, frames_sent=sent), slices.REASON

    def _timeout(self) -> Delivery:
        return outcome.timed_out(
            self._hop,
            self._limit,
            by_deadline=self._by_deadline,
            outages=self._services.outages_since(self._hop.began_at) if self._by_deadline else "",
            now=self._services.now(),
            jitter=self._services.environment.random(),
            frames_sent=self._frames_sent,
        )

    def _failure(self, failure: HandlerFailed) -> Delivery:
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

    def _rejection(self, rejection: CircuitOpenError) -> Delivery:
        delivery = outcome.rejected(
            self._hop,
            rejection.error,
            until=rejection.until,
            now=self._services.now(),
            jitter=self._services.environment.random(),
            frames_sent=self._frames_sent,
        )
        self.is_delayed = delivery.kind == "later"
        if self.is_delayed:
            self._report_delay(rejection)
        return delivery

    def _report_delay(self, rejection: CircuitOpenError) -> None:
        """Tell why the envelope waits: its message alone would be an envelope that does not move."""
        problem = rejection.problem.message
        self._services.telemetry.log.info("envelope waits", problem=problem, envelope_id=self._hop.envelope.id)
        if self._report_url is not None and self.last_report is not None:
            event = reports.with_problem(self.last_report, rejection.problem, now=self._services.now())
            self._services.progress.report(self._report_url, event)

    def _send_final(self, delivery: Delivery | None) -> None:
        """Send the envelope that ends the hop, unless frames did."""
        if delivery is None:
            return
        self._receipts.append(self._services.outbox.send(delivery))
        if delivery.kind == "retry":
            self._services.telemetry.count("Retried")
        if delivery.retry is not None and self._report_url is not None:
            event = reports.retried(self._hop, delivery.retry, now=self._services.now())
            self._services.progress.report(self._report_url, event)

    def _report_start(self) -> None:
        if self._report_url is not None:
            moment = self._services.now()
            self._services.progress.report(self._report_url, reports.received(self._hop, now=moment))
            self.last_report = reports.processing(self._hop, now=moment)
            self._services.progress.report(self._report_url, self.last_report)

    def _view(self) -> EnvelopeView:
        view = envelope_view(self._hop.envelope)
        view.publish_partial = self._publish_partial if self._report_url is not None else None
        return view

    def _publish_partial(self, message: Mapping[str, Any]) -> None:
        """Report a partial of the handler (`protocol §7`, FLY)."""
        if self._report_url is not None:
            event = reports.partial(self._hop, message, self._partial_count, now=self._services.now())
            self._partial_count += 1
            self._services.progress.report(self._report_url, event)

    def _report_completed(self, next_actors: tuple[str, ...] | None) -> None:
        if self._report_url is not None:
            self.last_report = reports.completed(
                self._hop, next_actors, now=self._services.now(), duration_ms=self._duration_ms
            )
            self._services.progress.report(self._report_url, self.last_report)

    @property
    def _duration_ms(self) -> float:
        return (self._services.environment.monotonic() - self._started_at) * 1000
