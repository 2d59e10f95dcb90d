"""protocol §8: the circuit breaker as a state machine, for any order of reads and writes."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle as Kept
from hypothesis.stateful import RuleBasedStateMachine, consumes, invariant, rule

from asya.protocol.mesh_table import CircuitBreaker
from asya.sidecar.circuit_breaker import (
    Circuit,
    Permit,
    Probe,
    Rejection,
    admit,
    after_failure,
    after_release,
    after_success,
)

LIMITS = CircuitBreaker(failures=3, window=30, open_for=60)
PROBE = 15.0


def enter(circuit: Circuit, caller: str, now: float) -> tuple[Permit | Rejection, Circuit]:
    """Ask, and write what there is to write."""
    answer = admit(circuit, caller, now=now, probe_seconds=PROBE)
    return (answer.permit, answer.circuit) if isinstance(answer, Probe) else (answer, circuit)


def after_failures(*times: float) -> Circuit:
    """What becomes of a new circuit when calls fail at these times."""
    circuit = Circuit()
    for number, at in enumerate(times):
        circuit = after_failure(circuit, LIMITS, Permit(f"call-{number}", circuit.era), now=at) or circuit
    return circuit


@pytest.mark.rule("8.circuit-breaker")
def test_it_opens_after_so_many_failures_within_the_window() -> None:
    assert after_failures(0, 10).open_until is None
    opened = after_failures(0, 10, 20)
    assert opened.open_until == 20 + 60
    assert enter(opened, "next", 79.9)[0] == Rejection(80, opened_at=20)


@pytest.mark.rule("8.circuit-breaker.cause")
def test_a_failed_probe_changes_the_error_and_not_the_time_of_the_opening() -> None:
    opened = after_failures(0, 10, 20)
    assert (opened.opened_at, opened.error) == (20, "")
    permit, half_open = enter(opened, "probe", 90)
    assert isinstance(permit, Permit)
    again = after_failure(half_open, LIMITS, permit, now=95, error="ConnectionError: " + "x" * 2000)
    assert again is not None
    assert (again.opened_at, again.open_until, len(again.error)) == (20, 155, 1024)
    assert admit(again, "next", now=100, probe_seconds=PROBE) == Rejection(155, 20, again.error)


def test_failures_further_apart_than_the_window_do_not_open_it() -> None:
    assert after_failures(0, 20, 30.5, 60, 90.5, 120).open_until is None
    assert after_failures(0, 20, 30.5, 49).open_until == 109


def test_a_healthy_actor_changes_nothing() -> None:
    permit, circuit = enter(Circuit(), "call", 0)
    assert circuit == Circuit()
    assert isinstance(permit, Permit)
    assert after_success(circuit, permit) is None
    assert after_release(circuit, permit) is None


@pytest.mark.rule("8.circuit-breaker")
def test_one_probe_when_it_has_been_open_long_enough() -> None:
    opened = after_failures(0, 0, 0)
    probe, half_open = enter(opened, "first", 60)
    assert probe == Permit("first", opened.era, is_probe=True)
    assert enter(half_open, "second", 60)[0] == Rejection(75, half_open.opened_at)


def test_a_probe_that_goes_well_closes_it_with_a_clean_slate() -> None:
    probe, half_open = enter(after_failures(0, 0, 0), "first", 60)
    assert isinstance(probe, Permit)
    closed = after_success(half_open, probe)
    assert closed is not None
    assert (closed.open_until, closed.failures) == (None, ())


def test_a_probe_that_fails_opens_it_for_as_long_again() -> None:
    probe, half_open = enter(after_failures(0, 0, 0), "first", 60)
    assert isinstance(probe, Permit)
    again = after_failure(half_open, LIMITS, probe, now=63)
    assert again is not None
    assert again.open_until == 63 + 60


def test_a_probe_that_tells_nothing_lets_the_next_one_probe() -> None:
    probe, half_open = enter(after_failures(0, 0, 0), "first", 60)
    assert isinstance(probe, Permit)
    given_up = after_release(half_open, probe)
    assert given_up is not None
    answer, _ = enter(given_up, "second", 61)
    assert isinstance(answer, Permit)
    assert answer.is_probe


def test_a_probe_whose_process_died_is_given_up_and_a_redelivery_goes_on_with_it() -> None:
    _, half_open = enter(after_failures(0, 0, 0), "first", 60)
    again, _ = enter(half_open, "first", 62)
    assert isinstance(again, Permit)
    later, taken_over = enter(half_open, "second", 75)
    assert isinstance(later, Permit)
    assert after_success(taken_over, Permit("first", half_open.era, is_probe=True)) is None


def test_calls_let_in_before_it_opened_say_nothing_once_it_has() -> None:
    early = Permit("early", 0)
    opened = after_failures(0, 0, 0)
    assert after_failure(opened, LIMITS, early, now=1) is None
    probe, half_open = enter(opened, "first", 60)
    assert isinstance(probe, Permit)
    closed = after_success(half_open, probe)
    assert closed is not None
    assert after_failure(closed, LIMITS, early, now=61) is None


@dataclass
class Sidecar:
    """What one sidecar has seen of the circuit, perhaps long ago."""

    seen: Circuit = field(default_factory=Circuit)


class Sidecars(RuleBasedStateMachine):
    """Sidecars that look, ask, write and die in any order; a write takes place only where nobody has written meanwhile."""

    calls = Kept("calls")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stored = Circuit()
        self.sidecars = [Sidecar() for _ in range(3)]
        self.asked = 0
        self.failures: list[float] = []  # of calls of the era that is on
        self.probes: list[tuple[Permit, float]] = []  # let in, and given up at

    @rule(seconds=st.sampled_from([0.1, 1.0, 7.0, PROBE, 29.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(number=st.integers(0, 2))
    def looks(self, number: int) -> None:
        self.sidecars[number].seen = self.stored

    @rule(target=calls, number=st.integers(0, 2))
    def asks(self, number: int) -> tuple[int, Permit] | None:
        self.asked += 1
        seen = self.sidecars[number].seen
        answer = admit(seen, f"call-{self.asked}", now=self.now, probe_seconds=PROBE)
        if isinstance(answer, Permit):
            return number, answer
        if isinstance(answer, Rejection) or not self._write(number, seen, answer.circuit):
            return None
        under_way = [probe for probe, until in self.probes if self.now < until and probe.era == self.stored.era]
        assert under_way == [], "two probes at a time"
        self.probes.append((answer.permit, self.now + PROBE))
        return number, answer.permit

    @rule(call=consumes(calls), verdict=st.sampled_from(["succeeded", "failed", "released", "died"]))
    def ends(self, call: tuple[int, Permit] | None, verdict: str) -> None:
        if call is None or verdict == "died":
            return
        number, permit = call
        while True:
            seen = self.sidecars[number].seen
            match verdict:
                case "succeeded":
                    changed = after_success(seen, permit)
                case "failed":
                    changed = after_failure(seen, LIMITS, permit, now=self.now)
                case _:
                    changed = after_release(seen, permit)
            if changed is None:
                break
            before = self.stored
            if self._write(number, seen, changed):
                self._check_transition(before, permit, verdict)
                break
            self.sidecars[number].seen = self.stored
        if permit.is_probe:
            self.probes = [(probe, until) for probe, until in self.probes if probe != permit]

    def _write(self, number: int, seen: Circuit, new: Circuit) -> bool:
        if self.stored.revision != seen.revision:
            return False
        self.stored = self.sidecars[number].seen = new
        return True

    def _check_transition(self, before: Circuit, permit: Permit, verdict: str) -> None:
        after = self.stored
        assert after.revision == before.revision + 1
        assert permit.era == before.era
        if before.open_until is None:
            assert verdict == "failed"
            self.failures.append(self.now)
            recent = [at for at in self.failures if at > self.now - LIMITS.window]
            assert (after.open_until is not None) == (len(recent) >= LIMITS.failures)
        elif after.open_until is None:
            assert verdict == "succeeded"
            assert permit.caller == before.probe
        if after.era != before.era:
            assert after.era == before.era + 1
            self.failures = []
            if after.open_until is not None:
                assert after.open_until == self.now + LIMITS.open_for

    @invariant()
    def open_means_open(self) -> None:
        until = self.stored.open_until
        answer = admit(self.stored, "somebody", now=self.now, probe_seconds=PROBE)
        if until is None:
            assert isinstance(answer, Permit)
            assert len(self.stored.failures) < LIMITS.failures
        elif self.now < until:
            assert answer == Rejection(until, self.stored.opened_at)

    @invariant()
    def it_never_stays_open_for_ever(self) -> None:
        if self.stored.open_until is not None:
            late = max(self.stored.open_until, self.stored.probe_until)
            assert isinstance(admit(self.stored, "somebody", now=late, probe_seconds=PROBE), Probe)


TestSidecars = pytest.mark.slow(Sidecars.TestCase)
TestSidecars.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_fewer_failures_allowed_by_a_new_deployment_count_at_the_next_one() -> None:
    stricter = CircuitBreaker(failures=1, window=30, open_for=60)
    opened = after_failure(after_failures(0, 1), stricter, Permit("call", 0), now=2)
    assert opened is not None
    assert opened.open_until == 62
