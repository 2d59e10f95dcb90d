"""What stands between a hop and its handler: the actor's circuit breaker, if it has one (`protocol §8`)."""

from datetime import UTC, datetime

from asya.messaging.hop import Hop
from asya.protocol.errors import ErrorInfo
from asya.protocol.times import format_time
from asya.sidecar.aws.circuit_breaker import CallResult
from asya.sidecar.circuit_breaker import Permit, Rejection
from asya.sidecar.lambdas.services import Services

CIRCUIT_OPEN = "CircuitOpen"


class CircuitOpenError(Exception):
    """The handler may not be called now.

    Attributes:
        error: what the hop fails with; rules match it by the type `CircuitOpen`.
    """

    def __init__(self, actor: str, until: float) -> None:
        again = format_time(datetime.fromtimestamp(until, UTC))
        message = f"{actor} has failed too often of late; it is not called again before {again}"
        super().__init__(message)
        self.error = ErrorInfo(type=CIRCUIT_OPEN, message=message)


class CircuitGuard:
    """Asks the breaker before the handler of one hop is called, and tells it how the call went."""

    def __init__(self, found: Services, hop: Hop) -> None:
        self._services = found
        self._hop = hop
        self._permit: Permit | None = None

    def acquire(self) -> None:
        """Ask whether the handler may be called now.

        Raises:
            CircuitOpenError: if it may not.
        """
        breaker = self._services.breaker
        if breaker is None:
            return
        answer = breaker.acquire(_caller(self._hop), self._services.now())
        if isinstance(answer, Rejection):
            raise CircuitOpenError(self._hop.actor, answer.until)
        if answer.is_probe:
            self._services.telemetry.log.info("circuit half-open: probing", envelope_id=self._hop.envelope.id)
        self._permit = answer

    def record(self, result: CallResult) -> None:
        """Tell how the call went; said once, whatever is said after it is not heard."""
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
