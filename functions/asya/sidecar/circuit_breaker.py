"""The circuit breaker as a state machine: stops the calls of a handler that keeps failing (`protocol §8`).

A circuit is *closed* (calls pass, failures are recorded), *open* (calls are rejected) or *half-open* (one probe tests whether
the handler works again). All sidecars of an actor share one circuit. These functions compute its next value; the caller
writes it only if `revision` is unchanged, and computes it again otherwise. Times are seconds since 1970.

`asya.light.lambdas.hop_run` asks it at each call, `asya.sidecar.aws.circuit_breaker` stores the circuit.
"""

import msgspec
from msgspec.structs import replace

from asya.protocol.mesh_table import CircuitBreaker

ERROR_LIMIT = 1024
"""Characters of the error that a circuit keeps."""


class Circuit(msgspec.Struct, frozen=True):
    """The circuit of one actor.

    Attributes:
        revision: grows with every change.
        era: grows when the circuit opens or closes. A call's result counts only in the era of its permit.
        failures: times of the recent failed calls of a closed circuit, oldest first; fewer than the limit.
        open_until: when a probe is allowed; None if the circuit is closed.
        probe: the caller that probes; empty if no probe is under way.
        probe_until: when the probe counts as lost and another one is allowed.
        opened_at: since when the circuit has not been closed; None if it is.
        error: the error of the last failure of a circuit that is not closed, such as `ConnectionError: no answer`.
    """

    revision: int = 0
    era: int = 0
    failures: tuple[float, ...] = ()
    open_until: float | None = None
    probe: str = ""
    probe_until: float = 0.0
    opened_at: float | None = None
    error: str = ""


class Permit(msgspec.Struct, frozen=True):
    """The permission to make one call."""

    caller: str
    era: int
    is_probe: bool = False


class Probe(msgspec.Struct, frozen=True):
    """A permit to probe; valid only if `circuit` can be written in place of the circuit that was read."""

    permit: Permit
    circuit: Circuit


class Rejection(msgspec.Struct, frozen=True):
    """The call is rejected.

    Attributes:
        until: when another request may succeed.
        opened_at, error: those of the circuit.
    """

    until: float
    opened_at: float | None = None
    error: str = ""


def admit(circuit: Circuit, caller: str, *, now: float, probe_seconds: float) -> Permit | Probe | Rejection:
    """Decide whether a call may be made.

    Args:
        caller: names the call. The caller of the current probe gets it again, so a redelivered message continues its probe.
        probe_seconds: how long a probe may take.
    """
    if circuit.open_until is None:
        return Permit(caller, circuit.era)
    if now < circuit.open_until:
        return Rejection(circuit.open_until, circuit.opened_at, circuit.error)
    if circuit.probe and circuit.probe != caller and now < circuit.probe_until:
        return Rejection(circuit.probe_until, circuit.opened_at, circuit.error)
    half_open = _change(circuit, probe=caller, probe_until=now + probe_seconds)
    return Probe(Permit(caller, circuit.era, is_probe=True), half_open)


def after_failure(
    circuit: Circuit, limits: CircuitBreaker, permit: Permit, *, now: float, error: str = ""
) -> Circuit | None:
    """The circuit after a failed call; None if it does not change.

    Args:
        error: the error of the call.
    """
    if _is_probe_of(circuit, permit):
        return _open(circuit, now, limits, error)
    if circuit.open_until is not None or permit.era != circuit.era:
        return None
    recent = sorted((*(at for at in circuit.failures if at > now - limits.window), now))
    if len(recent) >= limits.failures:
        return _open(circuit, now, limits, error)
    return _change(circuit, failures=tuple(recent))


def after_success(circuit: Circuit, permit: Permit) -> Circuit | None:
    """The circuit after a successful call; None if it does not change, which is the normal case."""
    return Circuit(circuit.revision + 1, circuit.era + 1) if _is_probe_of(circuit, permit) else None


def after_release(circuit: Circuit, permit: Permit) -> Circuit | None:
    """The circuit after a call whose result says nothing about the handler; the next call may probe at once."""
    return _change(circuit, probe="", probe_until=0.0) if _is_probe_of(circuit, permit) else None


def _is_probe_of(circuit: Circuit, permit: Permit) -> bool:
    return permit.is_probe and permit.era == circuit.era and permit.caller == circuit.probe


def _open(circuit: Circuit, now: float, limits: CircuitBreaker, error: str) -> Circuit:
    """Open a circuit, or keep it open after a failed probe: the time of its opening stays then."""
    since = now if circuit.open_until is None else circuit.opened_at
    until = now + limits.open_for
    return Circuit(circuit.revision + 1, circuit.era + 1, open_until=until, opened_at=since, error=error[:ERROR_LIMIT])


def _change(circuit: Circuit, **changes: object) -> Circuit:
    return replace(circuit, revision=circuit.revision + 1, **changes)
