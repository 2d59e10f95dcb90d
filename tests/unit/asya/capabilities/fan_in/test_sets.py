"""protocol §9: the decision about a set depends on its state alone."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from asya.capabilities.fan_in.sets import (
    Decision,
    Fail,
    Incomplete,
    Merge,
    SetAction,
    SetState,
    SetTooLargeError,
    collected,
    decide,
    origin_delivery,
    to_decision,
)
from asya.function.hop import Hop
from asya.protocol.codec import decode, encode
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Actor, FanIn
from tests.doubles.envelopes import NOW, arrival_of, mesh, message, raw, status
from tests.doubles.large_payloads import peak_of

LATER = NOW + timedelta(hours=1)
FAIL, PARTIAL = FanIn(), FanIn(on_failure="partial")
AT = "2026-11-20T12:00:00.250000Z"
QUORUM = FanIn(on_failure="partial", quorum=2)
TWO_LOST = Fail("SliceFailed", "slice 2 (and 1 more) of 4 ended without a result", 2)
LOST = ErrorInfo(type="ValueError", message="bad airport")


def state(count: int, arrived: set[int], lost: set[int] = frozenset(), **more: Any) -> SetState:  # type: ignore[assignment]
    return SetState(count, frozenset(arrived), frozenset(lost), LATER, **more)


# --- decide


@pytest.mark.parametrize(
    ("count", "arrived", "lost", "rule", "action"),
    [
        (1, {0}, set(), FAIL, Merge()),
        (3, {0, 1, 2}, set(), FAIL, Merge()),
        (3, {0, 1}, set(), FAIL, Incomplete()),
        (3, {1, 2}, set(), FAIL, Incomplete()),
        (3, {0, 1, 2}, {1}, FAIL, Merge()),  # a result came after all
        (3, {0, 1}, {2}, FAIL, Fail("SliceFailed", "slice 2 of 3 ended without a result", 2)),
        (4, set(), {2, 3}, FAIL, TWO_LOST),
        (3, {0, 1}, {2}, PARTIAL, Merge((2,))),
        (3, {0}, {1, 2}, PARTIAL, Merge((1, 2))),
        (3, {1}, {2}, PARTIAL, Incomplete()),
        (4, {0, 1}, {2}, PARTIAL, Incomplete()),
        (4, {0, 1}, {2, 3}, FanIn(on_failure="partial", quorum=1), Merge((2, 3))),
        (4, {0, 1}, {2, 3}, QUORUM, TWO_LOST),
        (4, {1}, {2, 3}, QUORUM, TWO_LOST),
    ],
)  # fmt: skip
def test_before_the_time_is_up(count: int, arrived: set[int], lost: set[int], rule: FanIn, action: SetAction) -> None:
    assert decide(state(count, arrived, lost), rule, now=NOW) == action


@pytest.mark.parametrize(
    ("count", "arrived", "lost", "rule", "action"),
    [
        (3, {0, 1, 2}, set(), FAIL, Merge()),
        (3, {0, 1}, set(), FAIL, Fail("FanInTimeout", "1 of 3 slices did not arrive in time: 2")),
        (3, {1, 2}, set(), FAIL, Fail("FanInTimeout", "1 of 3 slices did not arrive in time: 0")),
        (20, {5}, set(), FAIL, Fail("FanInTimeout", "19 of 20 slices did not arrive in time: 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, …")),
        (3, {0, 1}, set(), PARTIAL, Merge((2,))),
        (3, {0}, set(), PARTIAL, Merge((1, 2))),
        (3, {1, 2}, set(), PARTIAL, Fail("FanInTimeout", "1 of 3 slices did not arrive in time: 0")),
        (3, {0, 1}, set(), FanIn(on_failure="partial", quorum=1), Merge((2,))),
        (3, {0, 1}, set(), QUORUM, Fail("FanInTimeout", "1 of 3 slices did not arrive in time: 2")),
    ],
)  # fmt: skip
def test_when_the_time_is_up(count: int, arrived: set[int], lost: set[int], rule: FanIn, action: SetAction) -> None:
    assert decide(state(count, arrived, lost), rule, now=LATER) == action


@pytest.mark.rule("9.set-size")
@pytest.mark.parametrize("rule", [FAIL, PARTIAL])
@pytest.mark.parametrize("now", [NOW, LATER])
def test_a_set_that_no_fan_out_can_have_fails_in_the_memory_of_the_largest(rule: FanIn, now: datetime) -> None:
    largest, too_large = state(5001, {0}), state(1_000_000, {0})
    actions: list[SetAction] = []
    needed = peak_of(lambda: decide(largest, rule, now=now))
    assert peak_of(lambda: actions.append(decide(too_large, rule, now=now))) <= needed
    assert actions == [Fail("SliceFailed", "slice_count is over 5001, the slices of the largest fan-out")]
    assert len(largest.missing) == len(too_large.missing) == 5000


rules = st.builds(
    FanIn, on_failure=st.sampled_from(["fail", "partial"]), quorum=st.none() | st.integers(min_value=1, max_value=6)
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, int]], FanIn]:
    """All that is ever heard of a set, in any order and any number of times: slices arrive, are lost, or never seen."""
    count = draw(st.integers(min_value=1, max_value=7))
    fates = [draw(st.sampled_from(["arrived", "arrived", "lost", "silent"])) for _ in range(count)]
    if fates[0] == "lost":
        fates[0] = "arrived"
    news = [(fate, index) for index, fate in enumerate(fates) if fate != "silent"]
    news += draw(st.lists(st.sampled_from(news), max_size=5)) if news else []
    return count, draw(st.permutations(news)), draw(rules)


@given(histories())
def test_in_any_order_every_set_comes_to_one_end_that_fits_what_happened(
    history: tuple[int, list[tuple[str, int]], FanIn],
) -> None:
    count, news, rule = history
    known: dict[str, set[int]] = {"arrived": set(), "lost": set()}
    first: SetAction = Incomplete()
    for what, index in news:
        known[what].add(index)
        if isinstance(first, Incomplete):
            first = decide(state(count, known["arrived"], known["lost"]), rule, now=NOW)
    whole = state(count, known["arrived"], known["lost"])
    end = first if not isinstance(first, Incomplete) else decide(whole, rule, now=LATER)
    kept = count - 1 - len(whole.missing)
    match end:
        case Merge(missing=missing):
            assert whole.has_origin
            assert frozenset(missing) >= whole.missing
            assert not missing or (rule.on_failure == "partial" and count - 1 - len(missing) >= (rule.quorum or 0))
        case Fail(reason="SliceFailed", slice_index=lost):
            assert lost in whole.lost
            assert rule.on_failure == "fail" or kept < (rule.quorum or 0)
        case Fail(reason="FanInTimeout"):
            assert whole.missing or not whole.has_origin
        case _:
            pytest.fail(f"after all that, and its timeout, the set still waits: {end}")


# --- what leaves

OUTER = {
    "actor": "x-fan-in", "set_id": "o", "origin_id": "top", "slice_index": 2, "slice_count": 3, "aggregation_key": "/r",
}  # fmt: skip
HEADER = {
    "actor": "x-fan-in", "set_id": "s", "origin_id": "env-1", "slice_index": 0, "slice_count": 3,
    "aggregation_key": "/results",
}  # fmt: skip


def origin(**members: Any) -> Hop:
    """Slice 0 as it is stored, at x-fan-in."""
    known: dict[str, Any] = {
        "route": {"prev": ["prep", "infer"], "curr": "x-fan-in", "next": ["post"]},
        "headers": {"tenant": "acme", "x-asya-fan-in": HEADER, "x-asya-first-attempt": AT},
        "status": status(phase="processing", actor="x-fan-in"),
        "payload": {"text": "hello"},
    }
    body = message(**known | members)
    table = mesh({"x-fan-in": Actor(kind="fan_in", fan_in=FanIn())})
    return Hop.of(decode(body), "x-fan-in", table.actors["x-fan-in"], table, arrival_of(body))


MERGED = Decision(how="merged", at=AT)
ITEMS: dict[int, Raw] = {2: raw({"n": 2}), 1: Raw(b'{"n": 1.50}')}


@pytest.mark.rule("9.merge")
def test_the_merged_envelope_is_the_origin_again() -> None:
    delivery = origin_delivery(origin(), MERGED, ITEMS)
    assert (delivery.actor, delivery.kind) == ("post", "next")
    merged = decode(delivery.body)
    assert (merged.id, merged.parent_id) == ("env-1", None)
    assert (merged.route.prev, merged.route.curr) == (("prep", "infer", "x-fan-in"), "post")
    assert bytes(merged.payload) == b'{"text":"hello","results":[{"n": 1.50},{"n":2}]}'
    assert set(merged.headers) == {"tenant"}
    assert merged.status is not None
    assert (merged.status.phase, merged.status.actor, merged.status.updated_at) == ("pending", "post", AT)
    assert merged.status.created_at == "2026-11-20T11:59:00.000000Z"


@pytest.mark.rule("9.merge")
def test_numeric_order_not_alphabetical() -> None:
    many = origin(headers={"x-asya-fan-in": HEADER | {"slice_count": 13}})
    delivery = origin_delivery(many, MERGED, {index: raw(index) for index in range(12, 0, -1)})
    assert json.loads(bytes(decode(delivery.body).payload))["results"] == list(range(1, 13))


def test_at_the_end_of_the_route_the_merged_envelope_has_succeeded() -> None:
    delivery = origin_delivery(origin(route={"prev": ["infer"], "curr": "x-fan-in", "next": []}), MERGED, ITEMS)
    merged = decode(delivery.body)
    assert delivery.actor == "x-sink"
    assert merged.status is not None
    assert (merged.status.phase, merged.status.reason, merged.status.actor) == ("succeeded", "Completed", "x-fan-in")


def test_lost_items_are_null() -> None:
    delivery = origin_delivery(origin(), Decision(how="merged", at=AT, missing=(1,)), {2: raw(2), 1: raw("too late")})
    assert json.loads(bytes(decode(delivery.body).payload))["results"] == [None, 2]


@pytest.mark.rule("9.nesting")
def test_a_nested_set_gives_the_enclosing_header_back() -> None:
    nested = origin(
        headers={"x-asya-fan-in": HEADER | {"outer": OUTER}},
        route={"prev": ["infer"], "curr": "x-fan-in", "next": ["x-fan-in"]},
    )
    for decision in (MERGED, Decision(how="failed", at=AT, reason="SliceFailed", error=LOST)):
        envelope = decode(origin_delivery(nested, decision, ITEMS).body)
        assert json.loads(bytes(envelope.headers["x-asya-fan-in"])) == OUTER


@pytest.mark.rule("9.on_failure.fail")
def test_a_failed_set_ends_its_origin_at_x_sink_as_it_came() -> None:
    decision = to_decision(Fail("SliceFailed", "…", 2), LOST, now=NOW)
    delivery = origin_delivery(origin(), decision, {})
    ended = decode(delivery.body)
    assert delivery.actor == "x-sink"
    assert ended.route.curr == "x-fan-in"
    assert json.loads(bytes(ended.payload)) == {"text": "hello"}
    assert "x-asya-fan-in" not in ended.headers
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason, ended.status.error) == ("failed", "SliceFailed", LOST)


def test_a_set_out_of_time_says_what_is_missing() -> None:
    action = decide(state(3, {0, 1}), FAIL, now=LATER)
    assert isinstance(action, Fail)
    ended = decode(origin_delivery(origin(), to_decision(action, None, now=NOW), {}).body)
    assert ended.status is not None
    assert ended.status.reason == "FanInTimeout"
    assert ended.status.error == ErrorInfo(type="FanInTimeout", message="1 of 3 slices did not arrive in time: 2")


def test_a_slice_that_ended_without_an_error_fails_its_set_all_the_same() -> None:
    decision = to_decision(Fail("SliceFailed", "slice 2 of 3 ended without a result", 2), None, now=NOW)
    assert decision.error == ErrorInfo(type="SliceFailed", message="slice 2 of 3 ended without a result")


def test_a_canceled_origin_ends_as_canceled() -> None:
    ended = decode(origin_delivery(origin(), Decision(how="canceled", at=AT), {}).body)
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("canceled", "Canceled")


def test_a_place_that_the_results_cannot_be_put_fails_the_origin() -> None:
    delivery = origin_delivery(origin(payload="just a text"), MERGED, ITEMS)
    ended = decode(delivery.body)
    assert delivery.actor == "x-sink"
    assert ended.status is not None
    assert ended.status.error is not None
    assert "cannot be put into a text" in ended.status.error.message


@pytest.mark.rule("9.size")
def test_a_set_that_its_function_cannot_hold_fails_its_origin() -> None:
    def stored() -> Iterator[tuple[int, bytes]]:
        yield 1, message(payload=1)
        raise SetTooLargeError(89_478_485)

    delivery = origin_delivery(origin(), MERGED, collected(stored()))
    ended = decode(delivery.body)
    assert (delivery.actor, bytes(ended.payload)) == ("x-sink", bytes(origin().envelope.payload))
    assert ended.status is not None
    assert ended.status.error is not None
    assert (ended.status.phase, ended.status.error.type) == ("failed", "ResultTooLarge")
    assert "more than 89,478,485 bytes" in ended.status.error.message


def test_a_route_that_leads_nowhere_is_a_mismatch_outside_of_the_set() -> None:
    nowhere = origin(route={"prev": [], "curr": "x-fan-in", "next": ["nobody"]})
    delivery = origin_delivery(nowhere, MERGED, ITEMS)
    ended = decode(delivery.body)
    assert delivery.actor == "x-sump"
    assert "x-asya-fan-in" not in ended.headers
    assert ended.status is not None
    assert ended.status.reason == "RouteMismatch"


@pytest.mark.rule("9.merge.once")
@given(st.permutations(range(1, 6)), st.lists(st.integers(1, 5), unique=True))
def test_it_is_the_same_bytes_each_time(order: list[int], missing: list[int]) -> None:
    many = origin(headers={"x-asya-fan-in": HEADER | {"slice_count": 6}})
    decision = Decision(how="merged", at=AT, missing=tuple(sorted(missing)))
    expected = origin_delivery(many, decision, {index: raw({"n": index}) for index in range(1, 6)})
    again = Hop.of(decode(encode(many.envelope)), many.actor, many.spec, many.mesh, many.arrival)
    assert origin_delivery(again, decision, {index: raw({"n": index}) for index in order}) == expected
