"""protocol §8: the retry policy for an error, and its delays."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Policy, Resiliency, Rule
from asya.sidecar.retry_policy import Exhausted, NoPolicy, Retry, RetryDecision, backoff, decide, matches
from tests.doubles.envelopes import NOW

CONNECTION = ErrorInfo(type="ConnectionResetError", message="x", mro=("ConnectionError", "OSError", "Exception"))
OWN = ErrorInfo(type="shop.errors.Busy", message="x", mro=("shop.errors.Trouble", "Exception"))
TIMEOUT = ErrorInfo(type="Timeout", message="Runtime did not respond within 30s")


def policy(**values: Any) -> Policy:
    return Policy(**({"max_attempts": 3} | values))


def decided(resiliency: Resiliency, error: ErrorInfo = CONNECTION, attempt: int = 1, **more: Any) -> RetryDecision:
    known: dict[str, Any] = {"attempt": attempt, "first_attempt": NOW, "now": NOW, "jitter": 0.0}
    return decide(resiliency, error, **(known | more))


@pytest.mark.rule("8.patterns")
@pytest.mark.parametrize(
    ("pattern", "qualified", "hit"),
    [
        ("ValueError", "ValueError", True),
        ("builtins.ValueError", "ValueError", True),
        ("JSONDecodeError", "json.decoder.JSONDecodeError", True),
        ("json.decoder.JSONDecodeError", "json.decoder.JSONDecodeError", True),
        ("decoder.JSONDecodeError", "json.decoder.JSONDecodeError", False),
        ("json.JSONDecodeError", "json.decoder.JSONDecodeError", False),
        ("ValueError", "my.ValueError", True),
        ("builtins.ValueError", "my.ValueError", False),
        ("my.ValueError", "ValueError", False),
        ("Value", "ValueError", False),
        ("Error", "ValueError", False),
        ("Timeout", "requests.exceptions.Timeout", True),
    ],
)
def test_a_pattern_with_a_dot_is_exact_and_one_without_is_the_last_component(
    pattern: str, qualified: str, hit: bool
) -> None:
    assert matches(pattern, qualified) is hit


def rules(*pairs: tuple[str, str]) -> Resiliency:
    policies = {"a": policy(max_attempts=10), "b": policy(max_attempts=20), "default": policy(max_attempts=30)}
    return Resiliency(policies=policies, rules=tuple(Rule(errors=tuple(e.split()), policy=p) for e, p in pairs))


@pytest.mark.rule("8.rules")
@pytest.mark.parametrize(
    ("resiliency", "error", "attempts"),
    [
        (rules(("ConnectionResetError", "a"), ("OSError", "b")), CONNECTION, 10),
        (
            rules(("OSError", "a"), ("ConnectionResetError", "b")),
            CONNECTION,
            10,
        ),  # rules in order, not the closest type
        (rules(("ValueError KeyError", "a"), ("KeyError ConnectionError", "b")), CONNECTION, 20),
        (rules(("ValueError", "a")), CONNECTION, 30),
        (rules(), CONNECTION, 30),
        (rules(("Busy", "a")), OWN, 10),
        (rules(("shop.errors.Trouble", "b")), OWN, 20),
        (rules(("errors.Busy", "b")), OWN, 30),
    ],
)
def test_the_first_rule_that_hits_then_default(resiliency: Resiliency, error: ErrorInfo, attempts: int) -> None:
    decision = decided(resiliency, error)
    assert isinstance(decision, Retry)
    assert decision.max_attempts == attempts


@pytest.mark.rule("8.max_attempts", "8.rules")
def test_without_a_rule_and_a_default_there_is_one_attempt() -> None:
    only = Resiliency(policies={"a": policy()}, rules=(Rule(errors=("KeyError",), policy="a"),))
    assert decided(only) == NoPolicy()
    assert decided(Resiliency()) == NoPolicy()


@pytest.mark.rule("8.max_attempts")
def test_max_attempts_counts_the_first() -> None:
    three = Resiliency(policies={"default": policy(max_attempts=3, then_route=("rescue",))})
    assert [type(decided(three, attempt=n)) for n in (1, 2, 3, 4)] == [Retry, Retry, Exhausted, Exhausted]
    assert decided(three, attempt=3) == Exhausted(3, ("rescue",))
    assert decided(Resiliency(policies={"default": Policy()})) == Exhausted(1, None)


@pytest.mark.rule("8.max_duration")
def test_max_duration_is_wall_clock_since_the_first_attempt() -> None:
    limited = Resiliency(policies={"default": policy(max_duration=60.0)})
    for seconds, decision in ((59.9, Retry), (60.0, Exhausted)):
        assert isinstance(decided(limited, now=NOW + timedelta(seconds=seconds)), decision)


@pytest.mark.rule("8.backoff", "8.initial_delay")
@pytest.mark.parametrize(
    ("values", "delays"),
    [
        ({"backoff": "constant", "initial_delay": 2.0}, [2, 2, 2, 2]),
        ({"backoff": "linear", "initial_delay": 2.0}, [2, 4, 6, 8]),
        ({"backoff": "exponential", "initial_delay": 2.0}, [2, 4, 8, 16]),
        ({"initial_delay": 2.0, "max_interval": 5.0}, [2, 4, 5, 5]),
        ({"initial_delay": 0.0}, [0, 0, 0, 0]),
    ],
)
def test_backoff(values: dict[str, Any], delays: list[float]) -> None:
    assert [backoff(policy(**values), n, 0.99) for n in (1, 2, 3, 4)] == delays


@pytest.mark.rule("8.jitter", "8.max_interval")
def test_the_cap_comes_before_the_jitter() -> None:
    jittery = policy(initial_delay=100.0, max_interval=10.0, jitter=True)
    assert [backoff(jittery, 5, jitter) for jitter in (0.0, 0.5, 0.75)] == [5.0, 10.0, 12.5]


@given(
    st.sampled_from(["constant", "linear", "exponential"]),
    st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
    st.booleans(),
    st.integers(1, 10**9),
    st.floats(0, 1, exclude_max=True),
)
def test_a_delay_is_always_a_time_within_a_day_or_what_the_policy_names(
    kind: Any, initial: float, cap: float | None, jitter: bool, attempt: int, chance: float
) -> None:
    one = policy(backoff=kind, initial_delay=initial, max_interval=cap, jitter=jitter, max_attempts=10**9 + 1)
    decision = decided(Resiliency(policies={"default": one}), attempt=attempt, jitter=chance)
    assert isinstance(decision, Retry)
    if initial <= 86400.0 or cap is not None:
        assert timedelta(0) <= decision.delay <= timedelta(seconds=max(86400.0, cap or 0.0) + 0.001)
    else:
        assert timedelta(0) <= decision.delay <= timedelta(days=10_000)
    if cap is not None:
        assert decision.delay <= timedelta(seconds=cap * 1.5 + 0.001)


@pytest.mark.rule("5.11.literal-rule")
def test_protocol_5_11_only_a_rule_that_says_timeout_literally_is_for_the_time_limit() -> None:
    assert decided(rules(("OSError Timeout", "b"), ("Timeout", "a")), TIMEOUT, time_limit=True) == Retry(
        timedelta(seconds=1), 20
    )
    for pattern in ("TimeoutError", "builtins.Timeout", "Exception", "requests.Timeout"):
        assert decided(rules((pattern, "a")), TIMEOUT, time_limit=True) == NoPolicy()


CONTRACT = ErrorInfo(type="ContractError", message="payload.x: missing", mro=("ValueError", "Exception"))


@pytest.mark.rule("6.contract.literal-rule")
@pytest.mark.parametrize("pattern", ["ValueError", "Exception", "shop.ContractError"])
def test_a_contract_error_is_retried_by_no_rule_for_an_ancestor_and_no_default(pattern: str) -> None:
    resiliency = Resiliency(policies={"default": policy(), "p": policy()}, rules=(Rule(errors=(pattern,), policy="p"),))
    assert decided(resiliency, CONTRACT) == NoPolicy()


@pytest.mark.rule("6.contract.literal-rule")
def test_a_contract_error_is_retried_by_a_rule_with_its_name() -> None:
    rules = (Rule(errors=("ValueError",), policy="other"), Rule(errors=("ContractError",), policy="p"))
    resiliency = Resiliency(policies={"other": policy(), "p": policy(max_attempts=2)}, rules=rules)
    assert isinstance(decided(resiliency, CONTRACT), Retry)
    assert decided(resiliency, CONTRACT, attempt=2) == Exhausted(2, None)
