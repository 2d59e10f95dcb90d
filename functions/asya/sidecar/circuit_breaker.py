"""The circuit breaker: when an actor that keeps failing is left alone for a while (`protocol §8`).

A circuit is *closed* (calls pass, failures are half_open), *open* (calls are rejected) or, once it has been open long enough,
*half-open*: one caller probes whether the actor works again. All sidecars of an actor share one circuit, a small value. What
stands here says what becomes of that value; it is written only where nobody has changed it meanwhile (`revision`), and
decided anew otherwise. Times are seconds since the epoch.
"""

import msgspec
from msgspec.structs import replace

from asya.protocol.mesh_table import CircuitBreaker


class Circuit(msgspec.Struct, frozen=True):
    """One actor's circuit.

    Attributes:
        revision: grows with every change.
        era: grows whenever it opens or closes. A call says something only about the era it was let in.
        failures: when the latest calls of a closed circuit failed, oldest first; never as many as open it.
        open_until: when a probe may be made; None if it is closed.
        probe: who probes; empty if nobody does.
        probe_until: when that probe is given up, as its process must have died.
    """

    revision: int = 0
    era: int = 0
    failures: tuple[float, ...] = ()
    open_until: float | None = None
    probe: str = ""
    probe_until: float = 0.0


class Permit(msgspec.Struct, frozen=True):
    """A call that was let in."""

    caller: str
    era: int
    is_probe: bool = False


class Probe(msgspec.Struct, frozen=True):
    """A call that may be made if it can be half_open as the probe: if `circuit` can take the place of the one that was seen."""

    permit: Permit
    circuit: Circuit


class Rejection(msgspec.Struct, frozen=True):
    """A call that may not be made, and from when on another one may be worth asking for."""

    until: float


def admit(circuit: Circuit, caller: str, *, now: float, probe_seconds: float) -> Permit | Probe | Rejection:
    """Whether a call may be made.

    Args:
        caller: names the call; asking again under the name of the probe (its message was redelivered) goes on with it.
        probe_seconds: how long a probe may take.
    """
    if circuit.open_until is None:
        return Permit(caller, circuit.era)
    if now < circuit.open_until:
        return Rejection(circuit.open_until)
    if circuit.probe and circuit.probe != caller and now < circuit.probe_until:
        return Rejection(circuit.probe_until)
    half_open = _change(circuit, probe=caller, probe_until=now + probe_seconds)
    return Probe(Permit(caller, circuit.era, is_probe=True), half_open)


def after_failure(circuit: Circuit, limits: CircuitBreaker, permit: Permit, *, now: float) -> Circuit | None:
    """What a failed call makes of the circuit; None if it changes nothing."""
    if _is_probe_of(circuit, permit):
        return _open(circuit, now + limits.open_for)
    if circuit.open_until is not None or permit.era != circuit.era:
        return None
    recent = sorted((*(at for at in circuit.failures if at > now - limits.window), now))
    if len(recent) >= limits.failures:
        return _open(circuit, now + limits.open_for)
    return _change(circuit, failures=tuple(recent))


def after_success(circuit: Circuit, permit: Permit) -> Circuit | None:
    """What a call that went well makes of the circuit; None, as nearly always, if it changes nothing."""
    return Circuit(circuit.revision + 1, circuit.era + 1) if _is_probe_of(circuit, permit) else None


def after_release(circuit: Circuit, permit: Permit) -> Circuit | None:
    """What a call makes of the circuit that tells nothing about the actor: the next one may probe at once."""
    return _change(circuit, probe="", probe_until=0.0) if _is_probe_of(circuit, permit) else None


def _is_probe_of(circuit: Circuit, permit: Permit) -> bool:
    return permit.is_probe and permit.era == circuit.era and permit.caller == circuit.probe


def _open(circuit: Circuit, until: float) -> Circuit:
    return Circuit(circuit.revision + 1, circuit.era + 1, open_until=until)


def _change(circuit: Circuit, **changes: object) -> Circuit:
    return replace(circuit, revision=circuit.revision + 1, **changes)
