"""Guards a handler call with the actor's circuit breaker, if it has one (`protocol §8`)."""

from datetime import UTC, datetime, timedelta

from asya.function.hop import Hop
from asya.protocol.errors import ErrorInfo, TaskProblem
from asya.protocol.times import format_time
from asya.sidecar.aws.circuit_breaker import CallResult
from asya.sidecar.circuit_breaker import Permit, Rejection
from asya.sidecar.lambdas.services import Services

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
