"""The retry rule: which policy an error goes by, and what it says (`protocol §8`)."""

from datetime import datetime, timedelta

import msgspec

from asya.messaging.delivery import MAX_WAIT
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Policy, Resiliency

DEFAULT = "default"


class Retry(msgspec.Struct, frozen=True):
    """Try again after this long."""

    delay: timedelta
    max_attempts: int


class Exhausted(msgspec.Struct, frozen=True):
    """A policy applied and has no attempt left; `then_route` are the actors to go to instead of x-sink."""

    max_attempts: int
    then_route: tuple[str, ...] | None


class NoPolicy(msgspec.Struct, frozen=True):
    """No rule matched and there is no default policy: one attempt."""


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
    """What to do about an error of a handler.

    Args:
        attempt: the attempt that failed, from 1.
        first_attempt: when the first one began; base of `max_duration`.
        jitter: uniform in [0, 1), used only by policies that ask for jitter.
        time_limit: the actor's own time limit was reached: only a rule that literally says `Timeout` applies.
    """
    policy = _literal_timeout_policy(resiliency) if time_limit else _policy_for(resiliency, error)
    if policy is None:
        return NoPolicy()
    lasted = now - first_attempt
    if attempt >= policy.max_attempts or (
        policy.max_duration is not None and lasted.total_seconds() >= policy.max_duration
    ):
        return Exhausted(policy.max_attempts, policy.then_route)
    delay = min(backoff(policy, attempt, jitter), MAX_WAIT.total_seconds())
    return Retry(timedelta(seconds=delay), policy.max_attempts)


def backoff(policy: Policy, attempt: int, jitter: float) -> float:
    """Seconds to wait after this attempt failed; the cap comes before the jitter, which multiplies by [0.5, 1.5)."""
    match policy.backoff:
        case "constant":
            delay = policy.initial_delay
        case "linear":
            delay = attempt * policy.initial_delay
        case "exponential":
            # Beyond 2^62 every cap and every deadline is passed anyway; floats end at 2^1023.
            delay = policy.initial_delay * 2.0 ** min(attempt - 1, 62)
    if policy.max_interval is not None:
        delay = min(delay, policy.max_interval)
    return delay * (0.5 + jitter) if policy.jitter else delay


def matches(pattern: str, qualified: str) -> bool:
    """Whether a rule's pattern names an error type.

    A pattern with a dot is an exact qualified name, without one it equals the last component; `builtins.X` means `X`.
    """
    plain = pattern.removeprefix("builtins.")
    if "." in plain or plain != pattern:
        return plain == qualified
    return plain == qualified.rpartition(".")[2]


def _policy_for(resiliency: Resiliency, error: ErrorInfo) -> Policy | None:
    candidates = (error.type, *error.mro)
    for rule in resiliency.rules:
        for pattern in rule.errors:
            if any(matches(pattern, candidate) for candidate in candidates):
                return resiliency.policies[rule.policy]
    return resiliency.policies.get(DEFAULT)


def _literal_timeout_policy(resiliency: Resiliency) -> Policy | None:
    return next((resiliency.policies[rule.policy] for rule in resiliency.rules if "Timeout" in rule.errors), None)
