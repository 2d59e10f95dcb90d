"""The circuit that all sidecars of an actor share: one DynamoDB item, changed by conditional writes."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol import states
from asya.protocol.mesh_table import CircuitBreaker
from asya.sidecar.circuit_breaker import (
    ERROR_LIMIT,
    Circuit,
    Permit,
    Probe,
    Rejection,
    admit,
    after_failure,
    after_release,
    after_success,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# How long a sidecar uses the circuit that it read. A healthy actor costs one read in this time, and no write.
CACHE_SECONDS = 1.0
# How long the table is not called after an error. Otherwise the SDK's retries would delay every message.
OUTAGE_SECONDS = 30.0
_TRIES = 5
_RETENTION_SECONDS = 7 * 86400
_SORT_KEY = "circuit"

CallResult = Literal["succeeded", "failed", "released"]
_UNKNOWN_ERA = -1  # of a permit given without the table; its result is not recorded
_NEVER = float("-inf")


class Breaker:
    """The circuit breaker of one actor, in the table `asya-{namespace}-breaker`: pk = actor, sk = `circuit`.

    If the table cannot be read, calls are permitted.
    """

    def __init__(
        self,
        dynamodb: "DynamoDBClient",
        *,
        table: str,
        actor: str,
        limits: CircuitBreaker,
        probe_seconds: float,
        on_error: Callable[[Exception], None],
    ) -> None:
        """Create the breaker of one actor.

        Args:
            probe_seconds: how long a probe may take before another one is allowed.
            on_error: called with the error of a failed read or write.
        """
        self._table = Table(dynamodb, table)
        self._key = Key(actor, _SORT_KEY)
        self.limits = limits
        self._probe_seconds = probe_seconds
        self._on_error = on_error
        self._cached = Circuit()
        self._cached_until = _NEVER
        self._outage_until = _NEVER

    def acquire(self, caller: str, now: datetime) -> Permit | Rejection:
        """Request a permit for a call; `caller` names the call. Each permit needs a recorded result."""
        moment = now.timestamp()
        try:
            return self._acquire(caller, moment)
        except (ClientError, BotoCoreError) as error:
            self._start_outage(error, moment)
        return self._without_table(caller, moment)

    def record(self, permit: Permit, result: CallResult, now: datetime, error: str = "") -> Circuit | None:
        """Record the result of a call.

        Args:
            permit: that of the call.
            result: how the call ended.
            now: the time.
            error: that of a failed call.

        Returns:
            The new circuit if this call opened or closed it, else None.
        """
        moment = now.timestamp()
        if (result != states.FAILED and not permit.is_probe) or moment < self._outage_until:
            return None
        try:
            return self._record(permit, result, moment, error)
        except (ClientError, BotoCoreError) as problem:
            self._start_outage(problem, moment)
        return None

    def _acquire(self, caller: str, now: float) -> Permit | Rejection:
        if now < self._outage_until:
            return self._without_table(caller, now)
        for _ in range(_TRIES):
            circuit = self._circuit(now)
            answer = admit(circuit, caller, now=now, probe_seconds=self._probe_seconds)
            if not isinstance(answer, Probe):
                return answer
            if self._replace(circuit, answer.circuit, now):
                return answer.permit
        return Rejection(now + CACHE_SECONDS)  # other callers won every write

    def _record(self, permit: Permit, result: CallResult, now: float, error: str) -> Circuit | None:
        for _ in range(_TRIES):
            # Eras only grow, so a cached circuit is recent enough to show that nothing changes.
            circuit = self._circuit(now)
            changed = self._next_circuit(circuit, permit, result, now, error)
            if changed is None:
                return None
            if self._replace(circuit, changed, now):
                return changed if changed.era != circuit.era else None
        return None  # concurrent writers have recorded enough failures

    def _next_circuit(
        self, circuit: Circuit, permit: Permit, result: CallResult, now: float, error: str
    ) -> Circuit | None:
        match result:
            case states.SUCCEEDED:
                return after_success(circuit, permit)
            case states.FAILED:
                return after_failure(circuit, self.limits, permit, now=now, error=error)
            case "released":
                return after_release(circuit, permit)

    def _without_table(self, caller: str, now: float) -> Permit | Rejection:
        """Reject the call if the cached circuit is open; otherwise permit it without recording its result."""
        circuit = self._cached
        if circuit.open_until is None or now >= circuit.open_until:
            return Permit(caller, _UNKNOWN_ERA)
        return Rejection(circuit.open_until, circuit.opened_at, circuit.error)

    def _circuit(self, now: float) -> Circuit:
        if now >= self._cached_until:
            self._cached, self._cached_until = _circuit(self._table.get(self._key)), now + CACHE_SECONDS
        return self._cached

    def _replace(self, current: Circuit, new: Circuit, now: float) -> bool:
        """Write the new circuit unless the current one has changed; False if it has."""
        lifetime = max(self.limits.window, self.limits.open_for, self._probe_seconds) + _RETENTION_SECONDS
        change = put(self._key, {**_attributes(new), "expires_at": int(now + lifetime)})
        is_unchanged = (
            change.only_if("revision = :seen", seen=current.revision) if current.revision else change.if_absent()
        )
        if not self._table.write(is_unchanged):
            self._cached_until = _NEVER
            return False
        self._cached, self._cached_until = new, now + CACHE_SECONDS
        return True

    def _start_outage(self, error: Exception, now: float) -> None:
        self._outage_until = now + OUTAGE_SECONDS
        self._on_error(error)


def read_circuit(dynamodb: "DynamoDBClient", table: str, actor: str) -> Circuit:
    """Read the circuit of an actor; a closed one before its first failure.

    Raises:
        ClientError, BotoCoreError: DynamoDB fails or denies access.
    """
    return _circuit(Table(dynamodb, table).get(Key(actor, _SORT_KEY), consistent=False))


def _attributes(circuit: Circuit) -> dict[str, Value]:
    return {
        "revision": circuit.revision,
        "era": circuit.era,
        "failures": [round(at, 6) for at in circuit.failures],
        "open_until": _rounded(circuit.open_until),
        "probe": circuit.probe or None,
        "probe_until": _rounded(circuit.probe_until) if circuit.probe else None,
        "opened_at": _rounded(circuit.opened_at),
        "error": circuit.error or None,
    }


def _circuit(item: Item) -> Circuit:
    """The circuit in an item; a closed one if the item has another form, or times that are none.

    Code of users may write the item of its own actor, and who looks at all actors reads it.
    """
    if not item:
        return Circuit()
    try:
        circuit = Circuit(
            revision=item.integer("revision"),
            era=item.integer("era"),
            failures=tuple(item.list_of(float, "failures")),
            open_until=item.number("open_until", None),
            probe=item.text("probe", ""),
            probe_until=item.number("probe_until", 0.0),
            opened_at=item.number("opened_at", None),
            error=item.text("error", "")[:ERROR_LIMIT],
        )
        for seconds in (circuit.open_until, circuit.probe_until, circuit.opened_at):
            datetime.fromtimestamp(seconds or 0.0, UTC)
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        return Circuit()
    return circuit


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
