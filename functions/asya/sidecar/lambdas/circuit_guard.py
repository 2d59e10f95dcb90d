"""Guards a handler call with the actor's circuit breaker, if it has one (`protocol §8`)."""

from datetime import UTC, datetime, timedelta

from asya.messaging.hop import Hop
from asya.protocol.errors import ErrorInfo
from asya.protocol.times import format_time
from asya.sidecar.aws.circuit_breaker import CallResult
from asya.sidecar.circuit_breaker import Permit, Rejection
from asya.sidecar.lambdas.services import Services

CIRCUIT_OPEN = "CircuitOpen"


class CircuitOpenError(Exception):
    """The circuit breaker rejects the handler call.

    Attributes:
        error: the error of the hop; retry rules match it by the type `CircuitOpen`.
        until: when the circuit may permit a call.
    """

    def __init__(self, actor: str, until: datetime) -> None:
        next_call = format_time(until)
        message = f"{actor} failed too often recently; the next call is allowed at {next_call}"
        super().__init__(message)
        self.error = ErrorInfo(type=CIRCUIT_OPEN, message=message)
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
            raise CircuitOpenError(self._hop.actor, min(datetime.fromtimestamp(answer.until, UTC), longest))
        if answer.is_probe:
            self._services.telemetry.log.info("circuit half-open: probing", envelope_id=self._hop.envelope.id)
        self._permit = answer

    def record(self, result: CallResult) -> None:
        """Record the result of the call; only the first result counts."""
        breaker, permit, self._permit = self._services.breaker, self._permit, None
        if breaker is None or permit is None:
            return
        circuit = breaker.record(permit, result, self._services.now())
        if circuit is not None:
            state = "closed" if circuit.open_until is None else "open"
            self._services.telemetry.log.warning(f"circuit {state}", envelope_id=self._hop.envelope.id)


def _caller(hop: Hop) -> str:
    envelope = hop.envelope
    return f"{envelope.id}#{envelope.generation}#{envelope.route.position}#{hop.attempt}"
