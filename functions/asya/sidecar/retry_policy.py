"""Selects the retry policy for an error and computes the next delay (`protocol §8`)."""

from datetime import datetime, timedelta

import msgspec

from asya.contracts.errors import NAME as CONTRACT_ERROR
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Policy, Resiliency, Rule

DEFAULT = "default"
_TIMEOUT = "Timeout"


class Retry(msgspec.Struct, frozen=True):
    """Retry after a delay."""

    delay: timedelta
    max_attempts: int


class Exhausted(msgspec.Struct, frozen=True):
    """The policy has no attempt left; the envelope goes to `then_route`, or to x-sink without one."""

    max_attempts: int
    then_route: tuple[str, ...] | None


class NoPolicy(msgspec.Struct, frozen=True):
    """No rule matches and the actor has no default policy: the envelope has one attempt."""


RetryDecision = Retry | Exhausted | NoPolicy


def decide(
    resiliency: Resiliency,
    error: ErrorInfo,
    *,
    attempt: int,
    first_attempt: datetime,
    now: datetime,
    jitter: float,
    time_limit: bool = False,
) -> RetryDecision:
    """Decide how to handle an error of a handler.

    Args:
        attempt: the failed attempt, from 1.
        first_attempt: when the first attempt started; the base of `max_duration`.
        jitter: uniform in [0, 1); only policies with `jitter` use it.
        time_limit: the actor's time limit was reached, so only a rule that lists `Timeout` literally applies.
    """
    policy = _literal_policy(resiliency, _TIMEOUT) if time_limit else _policy_for(resiliency, error)
    if policy is None:
        return NoPolicy()
    elapsed = now - first_attempt
    if attempt >= policy.max_attempts or (
        policy.max_duration is not None and elapsed.total_seconds() >= policy.max_duration
    ):
        return Exhausted(policy.max_attempts, policy.then_route)
    delay = min(backoff(policy, attempt, jitter), policy.longest_delay)
    return Retry(timedelta(seconds=delay), policy.max_attempts)


def backoff(policy: Policy, attempt: int, jitter: float) -> float:
    """Seconds of delay after a failed attempt; the cap applies before the jitter, which multiplies by [0.5, 1.5)."""
    match policy.backoff:
        case "constant":
            delay = policy.initial_delay
        case "linear":
            delay = attempt * policy.initial_delay
        case "exponential":
            # 2^62 seconds exceed every cap and deadline, and a float overflows at 2^1024.
            delay = policy.initial_delay * 2.0 ** min(attempt - 1, 62)
    if policy.max_interval is not None:
        delay = min(delay, policy.max_interval)
    return delay * (0.5 + jitter) if policy.jitter else delay


def matches(pattern: str, qualified: str) -> bool:
    """Whether a rule's pattern matches an error type.

    A pattern with a dot matches the exact qualified name, one without a dot the last component. `builtins.X` means `X`.
    """
    plain = pattern.removeprefix("builtins.")
    if "." in plain or plain != pattern:
        return plain == qualified
    return plain == qualified.rpartition(".")[2]


def has_rule_for(resiliency: Resiliency, error: ErrorInfo) -> bool:
    """Whether a rule, and not only the default policy, decides about an error."""
    return _rule_for(resiliency, error) is not None


def _policy_for(resiliency: Resiliency, error: ErrorInfo) -> Policy | None:
    if error.type == CONTRACT_ERROR:
        return _literal_policy(resiliency, CONTRACT_ERROR)
    rule = _rule_for(resiliency, error)
    return resiliency.policies[rule.policy] if rule is not None else resiliency.policies.get(DEFAULT)


def _rule_for(resiliency: Resiliency, error: ErrorInfo) -> Rule | None:
    candidates = (error.type, *error.mro)
    for rule in resiliency.rules:
        for pattern in rule.errors:
            if any(matches(pattern, candidate) for candidate in candidates):
                return rule
    return None


def _literal_policy(resiliency: Resiliency, name: str) -> Policy | None:
    """The policy of the first rule with exactly this name; a rule for an ancestor, and the default, do not apply."""
    return next((resiliency.policies[rule.policy] for rule in resiliency.rules if name in rule.errors), None)
