"""protocol §9.branches: `branches` in handlers, and a route for each item of `fan_out`."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya import branches, fan_out
from asya.protocol.envelope import Frame
from asya.protocol.strict_json import decode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerFailed, HandlerInvoker
from asya.runtime.fan_out import FanOut

WAYS = {"stats": ["statistics"], "features": ["extract", "embed"], "raw": []}


def frames(output: Any) -> list[Frame]:
    view = EnvelopeView(
        id="env-1", parent_id="", prev=("prep",), curr="study", next=["join", "post"], headers={}, status={}
    )
    return list(HandlerInvoker(lambda _: output).frames(None, lambda: view, 5.0))


def header(frame: Frame) -> Any:
    return decode_value(frame.headers["x-asya-fan-in"] or b"null")


@pytest.mark.rule("9.branches")
def test_each_branch_has_its_route_and_the_payload_that_the_hop_received() -> None:
    origin, *slices = frames(branches(WAYS, into="/parts", at="join"))
    assert origin.next == ("join", "post")
    assert [each.next for each in slices] == [("statistics", "join"), ("extract", "embed", "join"), ("join",)]
    assert [each.payload for each in (origin, *slices)] == [None] * 4
    assert [header(each)["slice_index"] for each in slices] == [1, 2, 3]
    assert all(header(each)["branches"] == list(WAYS) for each in (origin, *slices))
    assert header(origin)["aggregation_key"] == "/parts"


@pytest.mark.rule("9.branches")
@pytest.mark.parametrize("own", [None, 0, {"a": [1]}, "text"])
def test_a_branch_may_have_a_payload_of_its_own(own: Any) -> None:
    _, stats, features, raw = frames(branches(WAYS, payloads={"features": own}))
    assert (stats.payload, raw.payload) == (None, None)
    assert decode_value(features.payload or b"") == own


@pytest.mark.rule("9.no-items")
def test_without_branches_the_origin_goes_alone() -> None:
    (origin,) = frames(branches({}))
    assert (header(origin)["slice_count"], header(origin)["branches"]) == (1, [])


@pytest.mark.parametrize(
    "made",
    [
        branches(WAYS),
        branches({"one": ["a"]}, payloads={"one": None}, into="/b", at="join"),
        branches({}),
        fan_out([1, 2], to=[["a"], ["b", "c"]]),
        fan_out([1, 2], to=[[], []], into="", at="join"),
        fan_out([], to=["a"]),
    ],
)
def test_the_text_of_a_fan_out_makes_an_equal_one(made: FanOut) -> None:
    assert eval(repr(made), {"branches": branches, "fan_out": fan_out}) == made


@pytest.mark.rule("9.fan_out")
def test_each_item_may_have_a_route_of_its_own() -> None:
    _, *items = frames(fan_out([1, 2, 3], to=(["a"], iter(["b", "c"]), ())))
    assert [each.next for each in items] == [("a", "x-fan-in"), ("b", "c", "x-fan-in"), ("x-fan-in",)]
    assert [decode_value(each.payload or b"") for each in items] == [1, 2, 3]


def bad_value() -> Iterator[Any]:
    yield branches({"one": ["a"], "two": ["b"]}, payloads={"two": {"x": {1}}})


def test_a_payload_that_json_cannot_hold_is_named_by_its_branch() -> None:
    with pytest.raises(HandlerFailed) as caught:
        list(
            HandlerInvoker(lambda _: bad_value()).frames(None, lambda: EnvelopeView("a", "", (), "b", [], {}, {}), 5.0)
        )
    assert "the branch 'two': $.x: a value of type set" in caught.value.error.message


@pytest.mark.parametrize(
    ("routes", "more", "kind", "problem"),
    [
        ([["a"]], {}, TypeError, "routes must be a dict by the name of the branch, not a list"),
        ({"one": "abc"}, {}, TypeError, "the route of 'one' must be a list, not a str"),
        ({"one": None}, {}, TypeError, "the route of 'one' must be a list, not a NoneType"),
        ({"one": {"a", "b"}}, {}, TypeError, "not a set, which has no order"),
        ({"one": [["a"]]}, {}, TypeError, "a route has the names of actors, not a list"),
        ({"one": ["A B"]}, {}, ValueError, "'A B' is not a DNS label"),
        ({1: ["a"]}, {}, TypeError, "the name of a branch is a text, not a int"),
        ({"": ["a"]}, {}, ValueError, "'' is no name of a branch"),
        ({"a\n": ["a"]}, {}, ValueError, "is no name of a branch"),
        ({"\ud800": ["a"]}, {}, ValueError, "is no name of a branch"),
        ({"a" * 65: ["a"]}, {}, ValueError, "1 to 64 printable characters"),
        ({str(n): ["a"] for n in range(101)}, {}, ValueError, "101 branches; 100 at most"),
        (
            {"one": ["a"]},
            {"payloads": {"two": 1}},
            ValueError,
            "payloads names 'two', but routes has no such branch: one",
        ),
        ({"one": ["a"]}, {"payloads": [1]}, TypeError, "payloads must be a dict"),
        ({"one": ["a"]}, {"into": "parts"}, ValueError, "not a JSON pointer"),
        ({"one": ["a"]}, {"at": "Join"}, ValueError, "not a DNS label"),
    ],
)
def test_mistakes_are_raised_where_they_are_made(
    routes: Any, more: dict[str, Any], kind: type[Exception], problem: str
) -> None:
    with pytest.raises(kind, match=problem):
        branches(routes, **more)


@pytest.mark.parametrize(
    ("to", "kind", "problem"),
    [
        (["a", ["b"]], TypeError, "to has names of actors and lists of them"),
        ([["a"]], ValueError, "to has 1 routes for 2 items"),
        ([["a"], ["b"], ["c"]], ValueError, "to has 3 routes for 2 items"),
        ([["a"], {"b": 1}], TypeError, r"to\[1\] must be a list, not a dict"),
        ([["a"], {"b"}], TypeError, r"to\[1\] must be a list, not a set"),
        ([["a"], [None]], TypeError, "names of actors, not a NoneType"),
        ([["a"], ["B"]], ValueError, "not a DNS label"),
        ({"a", "b"}, TypeError, "to must be a list, not a set, which has no order"),
    ],
)
def test_mistakes_in_the_routes_of_items(to: Any, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        fan_out([1, 2], to=to)
