"""protocol §2: the status at each transition."""

import pytest

from asya.protocol import status
from asya.protocol.errors import ErrorInfo
from asya.protocol.status import Status

NOW = "2026-11-20T12:00:00.250000Z"
SENT = "2026-11-20T11:59:59.000000Z"
ERROR = ErrorInfo(type="ValueError", message="no")


def start(received: Status | None, max_attempts: int = 1) -> Status:
    return status.started(received, actor="infer", now=NOW, sent_at=SENT, max_attempts=max_attempts)


@pytest.mark.rule("2.reasons")
def test_the_reasons_are_those_of_the_protocol() -> None:
    assert {
        *("Completed", "Canceled", "Paused", "RuntimeError", "RuntimeCrash", "SparkJobFailed", "CircuitOpen"),
        *("Timeout", "ParseError", "RouteMismatch", "MaxHops", "MaxChildren", "DeliveryExhausted"),
        *("PolicyExhausted", "PolicyRouted", "FanInTimeout", "SliceFailed"),
    } == status.REASONS


@pytest.mark.rule("2.creation")
def test_creation() -> None:
    assert status.created("prep", NOW, "2026-11-20T13:00:00Z") == Status(
        phase="pending",
        actor="prep",
        attempt=1,
        max_attempts=1,
        created_at=NOW,
        updated_at=NOW,
        deadline_at="2026-11-20T13:00:00Z",
    )


@pytest.mark.rule("1.status", "2.without-status")
def test_an_envelope_without_status_gets_one_created_when_it_was_sent() -> None:
    assert start(None) == Status(
        phase="processing", actor="infer", attempt=1, max_attempts=1, created_at=SENT, updated_at=NOW
    )


@pytest.mark.rule("2.partial", "2.start")
@pytest.mark.parametrize("phase", ["pending", "processing", "succeeded", "failed", None])
def test_the_start_of_a_hop_keeps_the_attempt_only_when_retrying(phase: status.Phase | None) -> None:
    assert start(Status(phase=phase, attempt=4, max_attempts=9), max_attempts=2).attempt == 1
    assert start(Status(phase=phase, attempt=4, max_attempts=9), max_attempts=2).max_attempts == 2
    again = start(Status(phase="retrying", attempt=4, max_attempts=9, error=ERROR), max_attempts=2)
    assert (again.attempt, again.max_attempts, again.error) == (4, 9, ERROR)


@pytest.mark.rule("2.partial", "2.set-once")
def test_created_at_and_deadline_are_set_once() -> None:
    born = Status(created_at="2026-01-01T00:00:00Z", deadline_at="2026-12-01T00:00:00Z")
    began = start(born)
    later = "2026-11-20T12:00:01.000000Z"
    for after in (
        began,
        status.routed(began, actor="post", now=later),
        status.succeeded(began, now=later),
        status.failed(began, reason="RuntimeError", now=later, error=ERROR),
        status.retrying(began, now=later, error=ERROR),
        status.policy_routed(began, actor="rescue", now=later, error=ERROR),
        status.ended(began, phase="canceled", reason="Canceled", now=later),
    ):
        assert (after.created_at, after.deadline_at) == (born.created_at, born.deadline_at)
        assert after.updated_at == (NOW if after is began else later)


@pytest.mark.rule("2.routing")
def test_routing_clears_error_and_reason() -> None:
    came = start(Status(phase="pending", reason="PolicyRouted", error=ERROR))
    assert came.error == ERROR  # readable to the then_route's handler
    onward = status.routed(came, actor="post", now=NOW)
    assert (onward.phase, onward.actor, onward.attempt, onward.max_attempts) == ("pending", "post", 1, 1)
    assert onward.error is None
    assert onward.reason is None


@pytest.mark.rule("2.success")
def test_success_keeps_the_attempt_that_succeeded_and_no_error() -> None:
    ended = status.succeeded(start(Status(phase="retrying", attempt=3, max_attempts=5, error=ERROR)), now=NOW)
    assert (ended.phase, ended.reason, ended.attempt, ended.error) == ("succeeded", "Completed", 3, None)


@pytest.mark.rule("2.failure", "2.retry")
def test_failure_and_retry() -> None:
    began = start(None, max_attempts=3)
    failed = status.failed(began, reason="PolicyExhausted", now=NOW, error=ERROR)
    assert (failed.phase, failed.reason, failed.attempt, failed.max_attempts, failed.error) == (
        "failed",
        "PolicyExhausted",
        1,
        3,
        ERROR,
    )
    again = status.retrying(began, now=NOW, error=ERROR)
    assert (again.phase, again.reason, again.attempt, again.error) == ("retrying", None, 2, ERROR)
