"""protocol §5, steps 8 to 10: the messages for a hop's frames."""

import msgspec
import pytest
from msgspec import Raw

from asya.function.hop import Hop
from asya.function.targets import TargetError
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Frame
from asya.protocol.mesh_table import Actor
from asya.protocol.times import format_time
from asya.sidecar import arrival, outcome
from tests.doubles.envelopes import NOW, SPAN, arrival_of, hop, mesh, message, raw, status
from tests.doubles.outcomes import ERROR, LAST, LATER, OUTPUT, envelope_in, failed


@pytest.mark.rule("1.shift", "5.9")
def test_5_8_a_frame_shifts_the_route_and_goes_to_the_next_actor() -> None:
    delivery = outcome.frame(hop(), OUTPUT, 0, now=LATER)
    after = envelope_in(delivery)
    assert (delivery.actor, delivery.kind, delivery.delay) == ("post", "next", 0)
    assert (after.route.prev, after.route.curr, after.route.next) == (("prep", "infer"), "post", ())
    assert after.id == "env-1"
    assert after.parent_id is None
    assert msgspec.json.decode(after.payload) == {"answer": 42}
    assert after.status is not None
    assert (after.status.phase, after.status.actor, after.status.attempt) == ("pending", "post", 1)
    assert after.status.created_at == status()["created_at"]
    assert after.status.updated_at == format_time(LATER)


@pytest.mark.rule("1.route.curr")
def test_5_8_at_the_end_of_the_route_it_goes_to_x_sink_succeeded() -> None:
    body = message(
        route=LAST, status=status(phase="retrying", attempt=2, max_attempts=3, error={"type": "E", "message": "x"})
    )
    delivery = outcome.frame(hop(body), OUTPUT, 0, now=LATER)
    after = envelope_in(delivery)
    assert (delivery.actor, delivery.kind) == ("x-sink", "sink")
    assert (after.route.prev, after.route.curr, after.route.next) == (("prep", "infer"), "", ())
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.attempt) == ("succeeded", "Completed", 2)
    assert after.status.error is None


@pytest.mark.rule("1.shift")
@pytest.mark.parametrize(
    ("ahead", "goes_to", "rest"),
    [((), "x-sink", ()), (("rescue", "post"), "rescue", ("post",)), (("infer",), "infer", ()), (None, "post", ())],
)
def test_1_the_route_is_as_the_handler_left_it_for_that_frame(
    ahead: tuple[str, ...] | None, goes_to: str, rest: tuple[str, ...]
) -> None:
    delivery = outcome.frame(hop(), Frame(OUTPUT.payload, next=ahead), 0, now=LATER)
    assert delivery.actor == goes_to
    assert envelope_in(delivery).route.next == rest


@pytest.mark.rule("1.parent_id", "3.root")
def test_4_later_frames_are_children_with_derived_ids_and_the_trees_root() -> None:
    first, second, third = (envelope_in(outcome.frame(hop(), OUTPUT, index, now=LATER)) for index in range(3))
    assert second.id == ids.child_id("env-1", 0, 1, 1)
    assert third.id == ids.child_id("env-1", 0, 1, 2)
    assert second.parent_id == third.parent_id == "env-1"
    assert second.root_id == "env-1"
    assert first.root_id is None
    assert second.headers["tenant"] == first.headers["tenant"]
    assert second.headers["traceparent"] == first.headers["traceparent"]
    assert second.route == first.route
    assert second.status == first.status


@pytest.mark.rule("1.parent_id", "1.unknown-keys", "3.root")
def test_1_frame_0_keeps_the_parent_and_a_grandchild_the_root() -> None:
    body = message(parent_id="env-0", headers={"x-asya-root": "env-root"}, extra_key=1)
    own, grandchild = (envelope_in(outcome.frame(hop(body), OUTPUT, index, now=LATER)) for index in range(2))
    assert (own.id, own.parent_id, own.root_id) == ("env-1", "env-0", "env-root")
    assert (grandchild.parent_id, grandchild.root_id) == ("env-1", "env-root")
    assert grandchild.extra == own.extra != {}


@pytest.mark.rule("3.generation", "12.generation")
def test_12_the_generation_is_part_of_a_childs_id() -> None:
    body = message(headers={"x-asya-generation": 3})
    assert envelope_in(outcome.frame(hop(body), OUTPUT, 1, now=LATER)).id == ids.child_id("env-1", 3, 1, 1)


@pytest.mark.rule("3.tool")
@pytest.mark.parametrize("index", [0, 1])
def test_a_child_is_of_the_tool_of_its_root(index: int) -> None:
    body = message(headers={"x-asya-tool": "order"})
    assert envelope_in(outcome.frame(hop(body), OUTPUT, index, now=LATER)).tool == "order"


@pytest.mark.rule("3.first-attempt", "3.others-survive", "5.9.pause")
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
    after = envelope_in(outcome.frame(hop(message(headers=headers)), OUTPUT, 0, now=LATER))
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
    after = envelope_in(outcome.frame(hop(), output, 0, now=LATER))
    assert after.header("colour") == "red"
    assert "tenant" not in after.headers
    assert {name: bytes(value) for name, value in after.status_extra.items()} == {"note": b'"n"'}
    assert after.status is not None
    assert (after.status.phase, after.status.reason, after.status.error) == ("pending", None, None)
    assert after.status.actor == "post"


@pytest.mark.rule("3.route-override")
def test_3_overrides_change_the_queue_and_are_noted_while_the_route_keeps_the_logical_name() -> None:
    headers = {
        "x-asya-route-override": {"post": "rescue"},
        "x-asya-route-resolved": {"prep": {"target": "p2", "by": "x"}},
    }
    delivery = outcome.frame(hop(message(headers=headers)), OUTPUT, 0, now=LATER)
    after = envelope_in(delivery)
    assert delivery.actor == "rescue"
    assert after.route.curr == "post"
    assert after.header("x-asya-route-resolved") == {
        "prep": {"target": "p2", "by": "x"},
        "post": {"target": "rescue", "by": "infer"},
    }


@pytest.mark.rule("3.route-override")
@pytest.mark.parametrize("target", ["x-sink", "nowhere", "Not A Name"])
def test_3_targets_of_overrides_obey_the_same_rules(target: str) -> None:
    with pytest.raises(TargetError):
        outcome.frame(hop(message(headers={"x-asya-route-override": {"post": target}})), OUTPUT, 0, now=LATER)


@pytest.mark.rule("1.who-may-be-sent-to", "5.12.forbidden")
@pytest.mark.parametrize("header", [{}, {"x-asya-route-override": {"post": "rescue"}}])
def test_5_12_a_next_actor_that_this_one_may_not_send_to_fails_the_hop(header: dict[str, object]) -> None:
    may_send_to = ("post",) if header else ("rescue",)
    here = hop(message(headers=header), spec=Actor(kind="handler", can_send_to=may_send_to))
    with pytest.raises(TargetError) as caught:
        outcome.frame(here, OUTPUT, 0, now=LATER)
    delivery = outcome.mismatch(here, caught.value, now=LATER)
    after = envelope_in(delivery)
    assert delivery.actor == "x-sump"
    assert after.status is not None
    assert after.status.error is not None
    assert (after.status.phase, after.status.reason) == ("failed", "RouteMismatch")
    target = "rescue" if header else "post"
    assert f"actor 'infer' may not send to '{target}'" in after.status.error.message
    assert "can_send_to: [post, rescue]" in after.status.error.message


@pytest.mark.rule("1.who-may-be-sent-to", "5.12")
@pytest.mark.parametrize("target", ["nowhere", "x-sink", "x-sump", "Post", ""])
def test_5_12_a_next_actor_that_is_none_of_the_mesh_fails_the_hop(target: str) -> None:
    output = Frame(OUTPUT.payload, next=(target, "post"))
    with pytest.raises(TargetError) as caught:
        outcome.frame(hop(), output, 0, now=LATER)
    delivery = outcome.mismatch(hop(), caught.value, now=LATER)
    after = envelope_in(delivery)
    assert (delivery.actor, delivery.kind) == ("x-sump", "sump")
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("failed", "RouteMismatch")
    assert after.status.error is not None
    assert target in after.status.error.message
    assert after.route == decode(message()).route
    assert after.payload == decode(message()).payload


@pytest.mark.rule("1.un-shifted", "5.10")
def test_5_10_no_frame_ends_well_un_shifted() -> None:
    body = message(payload={"n": 1.50})
    delivery = outcome.empty(hop(body), now=LATER)
    after = envelope_in(delivery)
    assert delivery.actor == "x-sink"
    assert after.route == decode(body).route
    assert bytes(after.payload) == bytes(decode(body).payload)
    assert after.status is not None
    assert (after.status.phase, after.status.reason) == ("succeeded", "Completed")


ERROR_AS_RECEIVED = {"type": "ValueError", "message": "no rows", "mro": ["Exception"], "traceback": ""}


@pytest.mark.rule("5.10.ended")
@pytest.mark.parametrize(
    ("phase", "reason", "expected"),
    [
        ("failed", "SparkJobFailed", ("failed", "SparkJobFailed")),
        ("failed", None, ("failed", "RuntimeError")),
        ("canceled", "Canceled", ("canceled", "Canceled")),
    ],
)
def test_5_10_no_frame_of_an_ended_envelope_keeps_its_end(
    phase: str, reason: str | None, expected: tuple[str, str]
) -> None:
    own = {"phase": phase, "error": ERROR_AS_RECEIVED} | ({"reason": reason} if reason else {})
    after = envelope_in(outcome.empty(hop(message(status=status(**own))), now=LATER)).status
    assert after is not None
    assert (after.phase, after.reason, after.actor) == (*expected, "infer")
    assert after.error is not None
    assert after.error.message == "no rows"


@pytest.mark.rule("5.10.ended", "8.then_route.error")
@pytest.mark.parametrize("phase", ["pending", "retrying", "processing", "succeeded", "paused"])
def test_5_10_no_frame_of_any_other_envelope_succeeds(phase: str) -> None:
    body = message(status=status(phase=phase, reason="PolicyRouted", error=ERROR_AS_RECEIVED))
    after = envelope_in(outcome.empty(hop(body), now=LATER)).status
    assert after is not None
    assert (after.phase, after.reason, after.error) == ("succeeded", "Completed", None)


def test_fair_by_is_the_targets() -> None:
    spec = Actor(kind="handler", fair_by="tenant")
    onward = outcome.frame(hop(spec=spec), OUTPUT, 0, now=LATER)
    assert onward.group is None
    fair = mesh({"post": spec})
    received = arrival.receive(arrival_of(message()), actor="infer", mesh=fair, now=NOW)
    assert isinstance(received, Hop)
    started = arrival.start(received, None, now=NOW, new_span=lambda: SPAN)
    assert isinstance(started, Hop)
    assert outcome.frame(started, OUTPUT, 0, now=LATER).group == "acme"


@pytest.mark.rule("1.raw-payload")
def test_1_raw_payloads_are_written_as_they_came() -> None:
    text = b'{ "a" : 1.0 , "b":"\xc3\xbc" }'
    body = message(payload=None).replace(b'"payload":null', b'"payload":' + text)
    for delivery in (
        outcome.empty(hop(body), now=LATER),
        failed(hop(body)),
        outcome.crashed(hop(body), ERROR, now=LATER),
    ):
        assert envelope_in(delivery).payload == Raw(text)
