"""protocol §5, steps 8 to 12, and §8: from a hop's outcome to what leaves."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Rule
from asya.protocol.times import format_time
from asya.routing import arrival, outcome
from asya.routing.delivery import Delivery, Diversion
from asya.routing.hop import Hop
from asya.routing.targets import UnknownTargetError
from tests.doubles.envelopes import NOW, SPAN, arrived, hop, mesh, message, raw, status

LATER = NOW + timedelta(seconds=2)
ERROR = ErrorInfo(type="ValueError", message="bad", mro=("Exception",), traceback="Traceback …")
OUTPUT = Frame(payload=raw({"answer": 42}))
LAST = {"prev": ["prep"], "curr": "infer", "next": []}


def carried(delivery: Delivery) -> Envelope:
    return decode(delivery.body)


def resilient(*, rules: tuple[Rule, ...] = (), **policies: Policy) -> Actor:
    return Actor(kind="handler", resiliency=Resiliency(policies=policies, rules=rules))


def failed(at: Hop, **more: Any) -> Delivery:
    known: dict[str, Any] = {"now": LATER, "jitter": 0.0}
    return outcome.failed(at, more.pop("error", ERROR), **(known | more))


# --- frames


def test_5_8_a_frame_shifts_the_route_and_goes_to_the_next_actor() -> None:
    delivery = outcome.frame(hop(), OUTPUT, 0, now=LATER)
    after = carried(delivery)
    assert (delivery.actor, delivery.kind, delivery.delay) == ("post", "next", 0)
    assert (after.route.prev, after.route.curr, after.route.next) == (("prep", "infer"), "post", ())
    assert after.id == "env-1"
    assert after.parent_id is None
    assert msgspec.json.decode(after.payload) == {"answer": 42}
    assert after.status is not None
    assert (after.status.phase, after.status.actor, after.status.attempt) == ("pending", "post", 1)
    assert after.status.created_at == status()["created_at"]
    assert after.status.updated_at == format_time(LATER)


def test_5_8_at_the_end_of_the_route_it_goes_to_x_sink_succeeded() -> None:
    body = message(
        route=LAST, status=status(phase="retrying", attempt=2, max_attempts=3, error={"type": "E", "message": "x"})
    )
    delivery = outcome.frame(hop(body), OUTPUT, 0, now=LATER)
    after = carried(delivery)
    assert (delivery.actor, delivery.kind) == ("x-sink", "sink")
    assert (after.route.prev, after.route.curr, after.route.next) == (("prep", "infer"), "", ())
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.attempt) == ("succeeded", "Completed", 2)
    assert after.status.error is None


@pytest.mark.parametrize(
    ("ahead", "goes_to", "rest"),
    [((), "x-sink", ()), (("rescue", "post"), "rescue", ("post",)), (("infer",), "infer", ()), (None, "post", ())],
)
def test_1_the_route_is_as_the_handler_left_it_for_that_frame(
    ahead: tuple[str, ...] | None, goes_to: str, rest: tuple[str, ...]
) -> None:
    delivery = outcome.frame(hop(), Frame(OUTPUT.payload, next=ahead), 0, now=LATER)
    assert delivery.actor == goes_to
    assert carried(delivery).route.next == rest


def test_4_later_frames_are_children_with_derived_ids_and_the_trees_root() -> None:
    first, second, third = (carried(outcome.frame(hop(), OUTPUT, index, now=LATER)) for index in range(3))
    assert second.id == ids.child_id("env-1", 0, 1, 1)
    assert third.id == ids.child_id("env-1", 0, 1, 2)
    assert second.parent_id == third.parent_id == "env-1"
    assert second.root_id == "env-1"
    assert first.root_id is None
    assert second.headers["tenant"] == first.headers["tenant"]
    assert second.headers["traceparent"] == first.headers["traceparent"]
    assert second.route == first.route
    assert second.status == first.status


def test_1_frame_0_keeps_the_parent_and_a_grandchild_the_root() -> None:
    body = message(parent_id="env-0", headers={"x-asya-root": "env-root"}, extra_key=1)
    own, grandchild = (carried(outcome.frame(hop(body), OUTPUT, index, now=LATER)) for index in range(2))
    assert (own.id, own.parent_id, own.root_id) == ("env-1", "env-0", "env-root")
    assert (grandchild.parent_id, grandchild.root_id) == ("env-1", "env-root")
    assert grandchild.extra == own.extra != {}


def test_12_the_generation_is_part_of_a_childs_id() -> None:
    body = message(headers={"x-asya-generation": 3})
    assert carried(outcome.frame(hop(body), OUTPUT, 1, now=LATER)).id == ids.child_id("env-1", 3, 1, 1)


def test_3_what_ends_with_the_hop_is_removed_at_the_shift_and_the_rest_kept() -> None:
    headers = {
        "x-asya-first-attempt": "2026-11-20T11:00:00Z",
        "x-asya-not-before": "2026-11-20T11:00:00Z",
        "x-asya-pause": {"prompt": "?"},
        "x-asya-gateway-url": "https://own.example",
        "x-asya-mesh-status": "off",
        "x-asya-fan-in": {"set_id": "s"},
        "x-asya-replay-of": "older",
        "tracestate": "a=b",
        "mine": [1, 2.50],
    }
    after = carried(outcome.frame(hop(message(headers=headers)), OUTPUT, 0, now=LATER))
    gone = {"x-asya-first-attempt", "x-asya-not-before", "x-asya-pause"}
    assert set(after.headers) == (set(headers) - gone) | {"traceparent"}
    assert {name: msgspec.json.decode(after.headers[name]) for name in set(headers) - gone} == {
        name: value for name, value in headers.items() if name not in gone
    }


def test_7_what_the_handler_set_travels_and_what_routing_stamps_wins() -> None:
    output = Frame(
        OUTPUT.payload,
        headers={"colour": raw("red"), "tenant": None},
        status={"note": raw("n"), "phase": raw("failed"), "reason": raw(5), "error": raw("x"), "actor": None},
    )
    after = carried(outcome.frame(hop(), output, 0, now=LATER))
    assert after.header("colour") == "red"
    assert "tenant" not in after.headers
    assert {name: bytes(value) for name, value in after.status_extra.items()} == {"note": b'"n"'}
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.error) == ("pending", None, None)
    assert after.status.actor == "post"


def test_3_overrides_change_the_queue_and_are_noted_while_the_route_keeps_the_logical_name() -> None:
    headers = {
        "x-asya-route-override": {"post": "rescue"},
        "x-asya-route-resolved": {"prep": {"target": "p2", "by": "x"}},
    }
    delivery = outcome.frame(hop(message(headers=headers)), OUTPUT, 0, now=LATER)
    after = carried(delivery)
    assert delivery.actor == "rescue"
    assert after.route.curr == "post"
    assert after.header("x-asya-route-resolved") == {
        "prep": {"target": "p2", "by": "x"},
        "post": {"target": "rescue", "by": "infer"},
    }


@pytest.mark.parametrize("target", ["x-sink", "nowhere", "Not A Name"])
def test_3_targets_of_overrides_obey_the_same_rules(target: str) -> None:
    with pytest.raises(UnknownTargetError):
        outcome.frame(hop(message(headers={"x-asya-route-override": {"post": target}})), OUTPUT, 0, now=LATER)


@pytest.mark.parametrize("target", ["nowhere", "x-sink", "x-sump", "Post", ""])
def test_5_12_a_next_actor_that_is_none_of_the_mesh_fails_the_hop(target: str) -> None:
    output = Frame(OUTPUT.payload, next=(target, "post"))
    with pytest.raises(UnknownTargetError) as caught:
        outcome.frame(hop(), output, 0, now=LATER)
    delivery = outcome.mismatch(hop(), caught.value, now=LATER)
    after = carried(delivery)
    assert (delivery.actor, delivery.kind) == ("x-sump", "sump")
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("failed", "RouteMismatch")
    assert after.status.error is not None
    assert target in after.status.error.message
    assert after.route == decode(message()).route
    assert after.payload == decode(message()).payload


def test_5_10_no_frame_ends_well_un_shifted() -> None:
    body = message(payload={"n": 1.50})
    delivery = outcome.empty(hop(body), now=LATER)
    after = carried(delivery)
    assert delivery.actor == "x-sink"
    assert after.route == decode(body).route
    assert bytes(after.payload) == bytes(decode(body).payload)
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("succeeded", "Completed")


# --- failures


def test_8_without_a_policy_it_ends_at_x_sink() -> None:
    delivery = failed(hop())
    after = carried(delivery)
    assert (delivery.actor, delivery.kind) == ("x-sink", "sink")
    assert after.route == decode(message()).route
    assert bytes(after.payload) == bytes(decode(message()).payload)
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.attempt) == ("failed", "RuntimeError", 1)
    assert after.status.error == ERROR


def test_8_a_retry_is_the_same_envelope_delayed() -> None:
    spec = resilient(default=Policy(max_attempts=3, initial_delay=2.5))
    body = message(payload={"n": 1.50}, other_key=[1])
    delivery = failed(hop(body, spec=spec))
    after = carried(delivery)
    assert (delivery.actor, delivery.kind, delivery.delay) == ("infer", "retry", 3)
    assert (after.id, after.route, bytes(after.payload)) == ("env-1", decode(body).route, bytes(decode(body).payload))
    assert after.extra == decode(body).extra
    assert after.status is not None
    assert (after.status.phase, after.status.attempt, after.status.max_attempts) == ("retrying", 2, 3)
    assert after.status.error == ERROR
    assert after.header("x-asya-first-attempt") == format_time(NOW)
    assert "x-asya-not-before" not in after.headers


def test_8_beyond_900_s_the_header_says_when() -> None:
    delivery = failed(hop(spec=resilient(default=Policy(max_attempts=3, initial_delay=1000.0))))
    assert delivery.delay == 900
    assert carried(delivery).header("x-asya-not-before") == format_time(LATER + timedelta(seconds=1000))


def test_5_2_a_retry_days_ahead_waits_as_long_as_not_before_counts() -> None:
    delivery = failed(hop(spec=resilient(default=Policy(max_attempts=3, initial_delay=86_400.0 * 3))))
    again = arrival.receive(arrived(delivery.body), actor="infer", mesh=mesh(), now=LATER + timedelta(seconds=900))
    assert isinstance(again, Diversion)  # still waiting, not "as due now"


@pytest.mark.parametrize(("delay", "is_sent"), [(50.0, True), (70.0, False)])
def test_8_a_retry_that_would_be_due_after_the_deadline_is_not_sent(delay: float, is_sent: bool) -> None:
    spec = resilient(default=Policy(max_attempts=3, initial_delay=delay))
    body = message(status=status(deadline_at=format_time(NOW + timedelta(seconds=60))))
    delivery = failed(hop(body, spec=spec))
    after = carried(delivery)
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
    received = arrival.receive(arrived(delivery.body), actor="infer", mesh=table, now=now)
    assert isinstance(received, Hop)
    started = arrival.start(received, None, now=now, new_span=lambda: SPAN)
    assert isinstance(started, Hop)
    return started


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
    after = carried(last)
    assert last.actor == "x-sink"
    assert after.status is not None
    assert (after.status.reason, after.status.attempt, after.status.max_attempts) == ("PolicyExhausted", 3, 3)
    assert after.status.error == ERROR


def test_8_max_duration_counts_from_the_first_attempt() -> None:
    spec = resilient(default=Policy(max_attempts=99, max_duration=30.0))
    second = again(failed(hop(spec=spec)), spec, seconds=20)
    assert failed(second, now=NOW + timedelta(seconds=29)).kind == "retry"
    over = carried(failed(second, now=NOW + timedelta(seconds=30)))
    assert over.status is not None
    assert over.status.reason == "PolicyExhausted"


def test_8_then_route_shifts_and_the_error_stays_readable_until_success() -> None:
    spec = resilient(default=Policy(max_attempts=1, then_route=("rescue", "post")))
    delivery = failed(hop(spec=spec))
    after = carried(delivery)
    assert (delivery.actor, delivery.kind) == ("rescue", "next")
    assert (after.route.prev, after.route.curr, after.route.next) == (("prep", "infer"), "rescue", ("post",))
    assert bytes(after.payload) == bytes(decode(message()).payload)
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.attempt) == ("pending", "PolicyRouted", 1)
    assert after.status.error == ERROR
    assert "x-asya-first-attempt" not in after.headers
    at_rescue = hop(delivery.body, actor="rescue")
    assert at_rescue.status.error == ERROR
    onward = carried(outcome.frame(at_rescue, OUTPUT, 0, now=LATER))
    assert onward.status is not None
    assert onward.status.error is None
    ended = carried(outcome.empty(at_rescue, now=LATER))
    assert ended.status is not None
    assert ended.status.error is None


def test_8_then_route_to_an_unknown_actor_is_a_mismatch() -> None:
    delivery = failed(hop(spec=resilient(default=Policy(then_route=("nowhere",)))))
    after = carried(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert after.status.reason == "RouteMismatch"
    assert after.status.error is not None
    assert "nowhere" in after.status.error.message


def test_8_then_route_heeds_overrides() -> None:
    body = message(headers={"x-asya-route-override": {"rescue": "post"}})
    delivery = failed(hop(body, spec=resilient(default=Policy(then_route=("rescue",)))))
    assert delivery.actor == "post"
    assert carried(delivery).header("x-asya-route-resolved") == {"rescue": {"target": "post", "by": "infer"}}


def test_10_a_job_that_died_has_a_reason_of_its_own_where_no_policy_applies() -> None:
    after = carried(failed(hop(), reason="SparkJobFailed"))
    assert after.status is not None
    assert after.status.reason == "SparkJobFailed"


# --- once frame 0 has left


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
            outcome.mismatch(start, UnknownTargetError("x"), now=LATER, frames_sent=2),
            "x-sump",
            "RouteMismatch",
        ),
    }
    delivery, end, reason = ends[how]
    after = carried(delivery)
    assert delivery.actor == end
    assert after.id == ids.child_id("env-1", 0, 1, "error")
    assert (after.parent_id, after.root_id) == ("env-1", "env-1")
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("failed", reason)
    assert bytes(after.payload) == bytes(decode(message()).payload)


# --- time


def timed_out(start: Hop, *, by_deadline: bool = False) -> Delivery:
    return outcome.timed_out(start, timedelta(seconds=300), by_deadline=by_deadline, now=LATER, jitter=0.0)


def test_5_11_the_handlers_own_limit_goes_to_x_sump() -> None:
    delivery = timed_out(hop(spec=resilient(default=Policy(max_attempts=5))))
    after = carried(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("failed", "Timeout")
    assert after.status.error == ErrorInfo(type="Timeout", message="Runtime did not respond within 5m0s")


def test_5_11_the_deadlines_goes_to_x_sink_whatever_the_rules_say() -> None:
    rule = Rule(errors=("Timeout",), policy="slow")
    delivery = timed_out(hop(spec=resilient(slow=Policy(max_attempts=5), rules=(rule,))), by_deadline=True)
    assert (delivery.actor, delivery.kind) == ("x-sink", "sink")


def test_5_11_a_rule_that_says_timeout_retries_it_then_routes_else_x_sump() -> None:
    rule = Rule(errors=("Timeout",), policy="slow")
    retry = timed_out(hop(spec=resilient(slow=Policy(max_attempts=2), rules=(rule,))))
    assert (retry.actor, retry.kind) == ("infer", "retry")
    over = timed_out(hop(spec=resilient(slow=Policy(max_attempts=1), rules=(rule,))))
    after = carried(over)
    assert over.actor == "x-sump"
    assert after.status is not None
    assert (after.status.reason, after.status.max_attempts) == ("Timeout", 1)
    routed = timed_out(hop(spec=resilient(slow=Policy(max_attempts=1, then_route=("rescue",)), rules=(rule,))))
    assert (routed.actor, routed.kind) == ("rescue", "next")
    nowhere = timed_out(hop(spec=resilient(slow=Policy(then_route=("nowhere",)), rules=(rule,))))
    assert nowhere.actor == "x-sump"


def test_5_11_a_crash_goes_to_x_sump_past_all_policies() -> None:
    error = ErrorInfo(type="SystemExit", message="1")
    delivery = outcome.crashed(hop(spec=resilient(default=Policy(max_attempts=5))), error, now=LATER)
    after = carried(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert (after.status.reason, after.status.error) == ("RuntimeCrash", error)


def test_5_1_a_payload_that_no_value_can_hold_is_a_parse_error() -> None:
    body = message(payload=None).replace(b'"payload":null', b'"payload":1e999')
    delivery = outcome.unreadable(hop(body), "Number out of range", now=LATER)
    after = carried(delivery)
    assert delivery.actor == "x-sump"
    assert bytes(after.payload) == b"1e999"
    assert after.status is not None
    assert after.status.error is not None
    assert after.status.error.message == "Failed to parse message: payload: Number out of range"


def test_fair_by_is_the_targets() -> None:
    spec = Actor(kind="handler", fair_by="tenant")
    onward = outcome.frame(hop(spec=spec), OUTPUT, 0, now=LATER)
    assert onward.group is None
    fair = mesh({"post": spec})
    received = arrival.receive(arrived(message()), actor="infer", mesh=fair, now=NOW)
    assert isinstance(received, Hop)
    started = arrival.start(received, None, now=NOW, new_span=lambda: SPAN)
    assert isinstance(started, Hop)
    assert outcome.frame(started, OUTPUT, 0, now=LATER).group == "acme"


def test_1_raw_payloads_are_written_as_they_came() -> None:
    text = b'{ "a" : 1.0 , "b":"\xc3\xbc" }'
    body = message(payload=None).replace(b'"payload":null', b'"payload":' + text)
    for delivery in (
        outcome.empty(hop(body), now=LATER),
        failed(hop(body)),
        outcome.crashed(hop(body), ERROR, now=LATER),
    ):
        assert carried(delivery).payload == Raw(text)
