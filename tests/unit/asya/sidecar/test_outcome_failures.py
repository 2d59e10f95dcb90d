"""protocol §5, steps 11 and 12, and §8: the messages for a hop's failures."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.function.hop import Delivery, Diversion, Hop
from asya.function.targets import TargetError
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Actor, Policy, Rule, Tool
from asya.protocol.times import format_time
from asya.sidecar import arrival, outcome
from tests.doubles.envelopes import NOW, SPAN, arrival_of, hop, mesh, message, status
from tests.doubles.outcomes import ERROR, LATER, OUTPUT, envelope_in, failed, resilient


@pytest.mark.rule("1.un-shifted")
def test_8_without_a_policy_it_ends_at_x_sink() -> None:
    delivery = failed(hop())
    after = envelope_in(delivery)
    assert (delivery.actor, delivery.kind) == ("x-sink", "sink")
    assert after.route == decode(message()).route
    assert bytes(after.payload) == bytes(decode(message()).payload)
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.attempt) == ("failed", "RuntimeError", 1)
    assert after.status.error == ERROR


@pytest.mark.rule("8.retry")
def test_8_a_retry_is_the_same_envelope_delayed() -> None:
    spec = resilient(default=Policy(max_attempts=3, initial_delay=2.5))
    body = message(payload={"n": 1.50}, other_key=[1])
    delivery = failed(hop(body, spec=spec))
    after = envelope_in(delivery)
    assert (delivery.actor, delivery.kind, delivery.delay) == ("infer", "retry", 3)
    assert (after.id, after.route, bytes(after.payload)) == ("env-1", decode(body).route, bytes(decode(body).payload))
    assert after.extra == decode(body).extra
    assert after.status is not None
    assert (after.status.phase, after.status.attempt, after.status.max_attempts) == ("retrying", 2, 3)
    assert after.status.error == ERROR
    assert after.header("x-asya-first-attempt") == format_time(NOW)
    assert "x-asya-not-before" not in after.headers


@pytest.mark.rule("3.not-before", "8.retry")
def test_8_beyond_900_s_the_header_says_when() -> None:
    delivery = failed(hop(spec=resilient(default=Policy(max_attempts=3, initial_delay=1000.0))))
    assert delivery.delay == 900
    assert envelope_in(delivery).header("x-asya-not-before") == format_time(LATER + timedelta(seconds=1000))


def test_5_2_a_retry_days_ahead_waits_as_long_as_not_before_counts() -> None:
    delivery = failed(hop(spec=resilient(default=Policy(max_attempts=3, initial_delay=86_400.0 * 3))))
    again = arrival.receive(arrival_of(delivery.body), actor="infer", mesh=mesh(), now=LATER + timedelta(seconds=900))
    assert isinstance(again, Diversion)  # still waiting, not "as due now"


@pytest.mark.rule("8.retry-after-deadline")
@pytest.mark.parametrize(("delay", "is_sent"), [(50.0, True), (70.0, False)])
def test_8_a_retry_that_would_be_due_after_the_deadline_is_not_sent(delay: float, is_sent: bool) -> None:
    spec = resilient(default=Policy(max_attempts=3, initial_delay=delay))
    body = message(status=status(deadline_at=format_time(NOW + timedelta(seconds=60))))
    delivery = failed(hop(body, spec=spec))
    after = envelope_in(delivery)
    assert after.status is not None
    if is_sent:
        assert delivery.kind == "retry"
        return
    assert delivery.actor == "x-sink"
    assert (after.status.phase, after.status.reason, after.status.max_attempts) == ("failed", "Timeout", 3)
    assert after.status.error == ERROR


def again(delivery: Delivery, spec: Actor, *, seconds: float) -> Hop:
    """The hop of a message that was sent back to the own queue."""
    now = NOW + timedelta(seconds=seconds)
    table = mesh({"infer": spec})
    received = arrival.receive(arrival_of(delivery.body), actor="infer", mesh=table, now=now)
    assert isinstance(received, Hop)
    started = arrival.start(received, None, now=now, new_span=lambda: SPAN)
    assert isinstance(started, Hop)
    return started


@pytest.mark.rule("4.attempts", "8.exhausted")
def test_8_attempts_are_counted_in_the_envelope_until_the_policy_is_exhausted() -> None:
    spec = resilient(default=Policy(max_attempts=3))
    delays = []
    current = hop(spec=spec)
    for attempt in (1, 2):
        assert current.attempt == attempt
        delivery = failed(current)
        delays.append(delivery.delay)
        current = again(delivery, spec, seconds=10.0 * attempt)
    assert delays == [1, 2]
    last = failed(current)
    after = envelope_in(last)
    assert last.actor == "x-sink"
    assert after.status is not None
    assert (after.status.reason, after.status.attempt, after.status.max_attempts) == ("PolicyExhausted", 3, 3)
    assert after.status.error == ERROR


@pytest.mark.rule("8.max_duration")
def test_8_max_duration_counts_from_the_first_attempt() -> None:
    spec = resilient(default=Policy(max_attempts=99, max_duration=30.0))
    second = again(failed(hop(spec=spec)), spec, seconds=20)
    assert failed(second, now=NOW + timedelta(seconds=29)).kind == "retry"
    over = envelope_in(failed(second, now=NOW + timedelta(seconds=30)))
    assert over.status is not None
    assert over.status.reason == "PolicyExhausted"


@pytest.mark.rule("3.times", "8.max_duration")
def test_8_max_duration_counts_although_an_earlier_holder_names_a_first_attempt_ahead() -> None:
    spec = resilient(default=Policy(max_attempts=99, max_duration=30.0))
    forged = {"x-asya-first-attempt": "9999-12-31T23:59:59Z"}
    first = hop(message(headers=forged, status=status(phase="retrying", attempt=2)), spec=spec)
    second = again(failed(first), spec, seconds=20)
    over = envelope_in(failed(second, now=NOW + timedelta(seconds=31)))
    assert over.status is not None
    assert over.status.reason == "PolicyExhausted"


@pytest.mark.rule("8.then_route", "8.then_route.error")
def test_8_then_route_shifts_and_the_error_stays_readable_until_success() -> None:
    spec = resilient(default=Policy(max_attempts=1, then_route=("rescue", "post")))
    delivery = failed(hop(spec=spec))
    after = envelope_in(delivery)
    assert (delivery.actor, delivery.kind) == ("rescue", "next")
    assert (after.route.prev, after.route.curr, after.route.next) == (("prep", "infer"), "rescue", ("post",))
    assert bytes(after.payload) == bytes(decode(message()).payload)
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.attempt) == ("pending", "PolicyRouted", 1)
    assert after.status.error == ERROR
    assert "x-asya-first-attempt" not in after.headers
    at_rescue = hop(delivery.body, actor="rescue")
    assert at_rescue.status.error == ERROR
    onward = envelope_in(outcome.frame(at_rescue, OUTPUT, 0, now=LATER))
    assert onward.status is not None
    assert onward.status.error is None
    ended = envelope_in(outcome.empty(at_rescue, now=LATER))
    assert ended.status is not None
    assert ended.status.error is None


@pytest.mark.rule("8.then_route")
def test_8_then_route_to_an_unknown_actor_is_a_mismatch() -> None:
    delivery = failed(hop(spec=resilient(default=Policy(then_route=("nowhere",)))))
    after = envelope_in(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert after.status.reason == "RouteMismatch"
    assert after.status.error is not None
    assert "nowhere" in after.status.error.message


@pytest.mark.rule("8.then_route", "5.12.forbidden")
def test_8_then_route_to_an_actor_that_this_one_may_not_send_to_is_a_mismatch() -> None:
    spec = changed(resilient(default=Policy(max_attempts=1, then_route=("rescue",))), can_send_to=("post",))
    delivery = failed(hop(spec=spec))
    after = envelope_in(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert after.status.error is not None
    assert after.status.reason == "RouteMismatch"
    assert "'infer' may not send to 'rescue'" in after.status.error.message


@pytest.mark.rule("8.then_route")
def test_8_then_route_heeds_overrides() -> None:
    body = message(headers={"x-asya-route-override": {"rescue": "post"}})
    delivery = failed(hop(body, spec=resilient(default=Policy(then_route=("rescue",)))))
    assert delivery.actor == "post"
    assert envelope_in(delivery).header("x-asya-route-resolved") == {"rescue": {"target": "post", "by": "infer"}}


def test_10_a_job_that_died_has_a_reason_of_its_own_where_no_policy_applies() -> None:
    after = envelope_in(failed(hop(), reason="SparkJobFailed"))
    assert after.status is not None
    assert after.status.reason == "SparkJobFailed"


@pytest.mark.rule("6.streamed")
@pytest.mark.parametrize("how", ["failed", "timed_out", "deadline", "crashed", "mismatch"])
def test_6_once_frame_0_has_left_a_failure_is_a_failed_child_and_never_a_retry(how: str) -> None:
    rule = Rule(errors=("Timeout", "ValueError"), policy="default")
    start = hop(spec=resilient(default=Policy(max_attempts=9, then_route=("rescue",)), rules=(rule,)))
    limit = timedelta(seconds=30)
    timing: dict[str, Any] = {"now": LATER, "jitter": 0.0, "frames_sent": 2}
    ends: dict[str, tuple[Delivery, str, str]] = {
        "failed": (failed(start, frames_sent=2), "x-sink", "RuntimeError"),
        "timed_out": (outcome.timed_out(start, limit, by_deadline=False, **timing), "x-sump", "Timeout"),
        "deadline": (outcome.timed_out(start, limit, by_deadline=True, **timing), "x-sink", "Timeout"),
        "crashed": (outcome.crashed(start, ERROR, now=LATER, frames_sent=2), "x-sump", "RuntimeCrash"),
        "mismatch": (
            outcome.mismatch(start, TargetError("x"), now=LATER, frames_sent=2),
            "x-sump",
            "RouteMismatch",
        ),
    }
    delivery, end, reason = ends[how]
    after = envelope_in(delivery)
    assert delivery.actor == end
    assert after.id == ids.child_id("env-1", 0, 1, "error")
    assert (after.parent_id, after.root_id) == ("env-1", "env-1")
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("failed", reason)
    assert bytes(after.payload) == bytes(decode(message()).payload)


def timed_out(start: Hop, *, by_deadline: bool = False) -> Delivery:
    return outcome.timed_out(start, timedelta(seconds=300), by_deadline=by_deadline, now=LATER, jitter=0.0)


@pytest.mark.rule("5.11.own-limit", "5.11.words")
def test_5_11_the_handlers_own_limit_goes_to_x_sump() -> None:
    delivery = timed_out(hop(spec=resilient(default=Policy(max_attempts=5))))
    after = envelope_in(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("failed", "Timeout")
    assert after.status.error == ErrorInfo(type="Timeout", message="Runtime did not respond within 5m0s")


@pytest.mark.rule("5.11.deadline")
def test_5_11_the_deadlines_goes_to_x_sink_whatever_the_rules_say() -> None:
    rule = Rule(errors=("Timeout",), policy="slow")
    delivery = timed_out(hop(spec=resilient(slow=Policy(max_attempts=5), rules=(rule,))), by_deadline=True)
    assert (delivery.actor, delivery.kind) == ("x-sink", "sink")


@pytest.mark.rule("5.11.deadline.words")
@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ({}, "until the deadline of the task; start it with a later one"),
        (
            {
                "quote": Tool(description="", route=("prep", "infer"), timeout=400),
                "other": Tool(description="", route=("infer",)),
            },
            "until the deadline of the task (tool quote); raise the timeout of the tool quote in the mesh file, "
            "or make the call of infer shorter",
        ),
        (
            dict.fromkeys(("one", "two"), Tool(description="", route=("prep",), timeout=400)),
            "start it with a later one",
        ),
    ],
)
def test_5_11_the_message_of_the_deadline_says_what_was_left_and_what_gives_more(
    tools: dict[str, Tool], words: str
) -> None:
    begun = hop(
        message(status=status(created_at="2026-11-20T12:00:00.000000Z", deadline_at="2026-11-20T12:06:40.000000Z"))
    )
    ended = envelope_in(timed_out(changed(begun, mesh=changed(begun.mesh, tools=tools)), by_deadline=True)).status
    assert ended is not None
    assert ended.error is not None
    assert ended.error.type == "Timeout"
    assert ended.error.message.startswith("Runtime did not respond within 5m0s, which was left of the 6m40s ")
    assert ended.error.message.endswith(words)


@pytest.mark.rule("5.11.literal-rule")
def test_5_11_a_rule_that_says_timeout_retries_it_then_routes_else_x_sump() -> None:
    rule = Rule(errors=("Timeout",), policy="slow")
    retry = timed_out(hop(spec=resilient(slow=Policy(max_attempts=2), rules=(rule,))))
    assert (retry.actor, retry.kind) == ("infer", "retry")
    over = timed_out(hop(spec=resilient(slow=Policy(max_attempts=1), rules=(rule,))))
    after = envelope_in(over)
    assert over.actor == "x-sump"
    assert after.status is not None
    assert (after.status.reason, after.status.max_attempts) == ("Timeout", 1)
    routed = timed_out(hop(spec=resilient(slow=Policy(max_attempts=1, then_route=("rescue",)), rules=(rule,))))
    assert (routed.actor, routed.kind) == ("rescue", "next")
    nowhere = timed_out(hop(spec=resilient(slow=Policy(then_route=("nowhere",)), rules=(rule,))))
    assert nowhere.actor == "x-sump"


@pytest.mark.rule("5.11.crash")
def test_5_11_a_crash_goes_to_x_sump_past_all_policies() -> None:
    error = ErrorInfo(type="SystemExit", message="1")
    delivery = outcome.crashed(hop(spec=resilient(default=Policy(max_attempts=5))), error, now=LATER)
    after = envelope_in(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert (after.status.reason, after.status.error) == ("RuntimeCrash", error)


def test_5_1_a_payload_that_no_value_can_hold_is_a_parse_error() -> None:
    body = message(payload=None).replace(b'"payload":null', b'"payload":1e999')
    delivery = outcome.unreadable(hop(body), "Number out of range", now=LATER)
    after = envelope_in(delivery)
    assert delivery.actor == "x-sump"
    assert bytes(after.payload) == b"1e999"
    assert after.status is not None
    assert after.status.error is not None
    assert after.status.error.message == "Failed to parse message: payload: Number out of range"


OPEN = ErrorInfo(type="CircuitOpen", message="the circuit is open")


def rejected(body: bytes, jitter: float) -> Delivery:
    """The delivery of a call that an open circuit rejects at `NOW`, for 30 s."""
    return outcome.rejected(hop(body), OPEN, until=NOW + timedelta(seconds=30), now=NOW, jitter=jitter)


@pytest.mark.rule("8.circuit-breaker.delay")
@pytest.mark.parametrize(("left", "jitter", "delay"), [(None, 0.9, 44), (40, 0.9, 35), (40, 0.0, 30), (30, 0.9, 30)])
def test_8_the_spread_of_a_circuit_delay_ends_before_the_deadline(left: int | None, jitter: float, delay: int) -> None:
    deadline = {} if left is None else {"deadline_at": format_time(NOW + timedelta(seconds=left))}
    delivery = rejected(message(status=status(**deadline)), jitter)
    assert (delivery.actor, delivery.kind, delivery.delay) == ("infer", "later", delay)


@pytest.mark.rule("8.circuit-breaker.delay")
def test_8_a_circuit_that_opens_after_the_deadline_ends_the_envelope() -> None:
    delivery = rejected(message(status=status(deadline_at=format_time(NOW + timedelta(seconds=29)))), 0.0)
    after = envelope_in(delivery)
    assert after.status is not None
    assert (delivery.actor, after.status.reason, after.status.error) == ("x-sink", "Timeout", OPEN)


@pytest.mark.rule("3.times", "8.circuit-breaker.delay")
def test_8_a_circuit_delay_does_not_begin_in_the_future() -> None:
    forged = {"x-asya-circuit-open-since": format_time(NOW + timedelta(days=365))}
    after = envelope_in(rejected(message(headers=forged), 0.0))
    assert after.header("x-asya-circuit-open-since") == format_time(NOW)
