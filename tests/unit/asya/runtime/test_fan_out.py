"""protocol §9: `fan_out` in every kind of handler."""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from asya import branches, fan_out
from asya.protocol import ids
from asya.protocol.envelope import Frame
from asya.protocol.headers import MAX_ENCLOSING_SETS
from asya.protocol.slices import decode_header
from asya.protocol.strict_json import decode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerFailed, HandlerInvoker
from asya.runtime.fan_out import MAX_ITEMS, FanOut
from asya.runtime.modes import EnvelopeMode, PayloadMode
from tests.doubles.nested_sets import DEPTHS, nested

OUTER = {"actor": "x-fan-in", "set_id": "outer", "origin_id": "o", "slice_index": 1, "slice_count": 3}


def test_a_fan_out_compares_and_prints() -> None:
    made = fan_out([{"n": 1}], to=["score"])
    assert made == fan_out(iter([{"n": 1}]), to=("score",))
    assert made != fan_out([{"n": 2}], to=["score"])
    assert made != fan_out([{"n": 1}], to=["score"], into="/scores")
    assert repr(made) == "fan_out([{'n': 1}], to=['score'])"
    assert repr(fan_out([], to=["a"], into="/b", at="merge")) == "fan_out([], to=['a'], into='/b', at='merge')"


def view(**changes: Any) -> EnvelopeView:
    known: dict[str, Any] = {
        "id": "env-1",
        "parent_id": "",
        "prev": ("prep",),
        "curr": "split",
        "next": ["x-fan-in", "post"],
        "headers": {"tenant": "acme"},
        "status": {},
    }
    return EnvelopeView(**known | changes)


def frames(handler: Callable[[Any], Any], *, mode: Any = None, payload: Any = None, **changes: Any) -> list[Frame]:
    call = HandlerInvoker(handler, mode or PayloadMode())
    return list(call.frames(payload, lambda: view(**changes), 5.0))


def header(frame: Frame) -> Any:
    return decode_value(frame.headers["x-asya-fan-in"] or b"null")


def generator(_payload: Any) -> Iterator[FanOut]:
    yield from fan_out([{"a": 1}, None], to=["score", "check"], into="/scores")


async def async_generator(_payload: Any) -> AsyncIterator[FanOut]:
    for frame in fan_out([{"a": 1}, None], to=["score", "check"], into="/scores"):
        yield frame


def function(_payload: Any) -> FanOut:
    return fan_out([{"a": 1}, None], to=["score", "check"], into="/scores")


async def coroutine(_payload: Any) -> FanOut:
    return fan_out([{"a": 1}, None], to=["score", "check"], into="/scores")


def yielded_itself(_payload: Any) -> Iterator[FanOut]:
    yield fan_out([{"a": 1}, None], to=["score", "check"], into="/scores")


@pytest.mark.rule("9.fan_out")
@pytest.mark.parametrize("handler", [generator, async_generator, function, coroutine, yielded_itself])
def test_every_kind_of_handler_fans_out_alike(handler: Callable[[Any], Any]) -> None:
    origin, first, second = frames(handler)
    assert origin.payload is None  # as it was received
    assert origin.next == ("x-fan-in", "post")
    assert [decode_value(frame.payload or b"") for frame in (first, second)] == [{"a": 1}, None]
    assert first.next == second.next == ("score", "check", "x-fan-in")
    assert header(origin) == {
        "actor": "x-fan-in",
        "set_id": ids.set_id("env-1", 0, 1),
        "origin_id": "env-1",
        "slice_index": 0,
        "slice_count": 3,
        "aggregation_key": "/scores",
    }
    assert [header(frame)["slice_index"] for frame in (first, second)] == [1, 2]
    assert all(frame.opens_set for frame in (origin, first, second))


@pytest.mark.rule("9.set-id")
def test_the_sets_id_tells_generations_and_positions_apart() -> None:
    def set_of(**changes: Any) -> str:
        return str(header(frames(generator, **changes)[0])["set_id"])

    set_ids = {
        set_of(),
        set_of(prev=("prep", "split", "x-fan-in")),
        set_of(headers={"x-asya-generation": 1}),
        set_of(id="env-2"),
    }
    assert len(set_ids) == 4
    assert set_of() == set_of()


@pytest.mark.rule("9.no-items")
def test_without_items_the_origin_goes_alone() -> None:
    (origin,) = frames(lambda _: fan_out([], to=["score"]))
    assert header(origin)["slice_count"] == 1
    assert header(origin)["aggregation_key"] == "/results"


@pytest.mark.rule("9.fan_out")
@pytest.mark.parametrize(
    ("ahead", "rest"),
    [
        ([], ()),
        (["post"], ("post",)),
        (["x-fan-in", "post"], ("post",)),
        (["post", "x-fan-in"], ("post", "x-fan-in")),
        (["x-fan-in", "x-fan-in"], ("x-fan-in",)),
    ],
)
def test_the_rest_is_the_handlers_next_less_a_leading_fan_in_actor(ahead: list[str], rest: tuple[str, ...]) -> None:
    assert frames(generator, next=ahead)[0].next == ("x-fan-in", *rest)


@pytest.mark.rule("9.fan_out")
def test_next_as_the_handler_left_it_is_the_rest() -> None:
    def handler(_payload: Any) -> Iterator[Any]:
        yield "SET", ".route.next", ["audit"]
        yield "SET", ".headers.seen", 1
        yield from fan_out(["x"], to=["score"], at="gather")

    origin, item = frames(handler)
    assert origin.next == ("gather", "audit")
    assert item.next == ("score", "gather")
    assert bytes(origin.headers["seen"] or b"") == bytes(item.headers["seen"] or b"") == b"1"


@pytest.mark.rule("9.nesting")
@pytest.mark.parametrize(
    ("ahead", "rest"),
    [
        # The leading fan-in actor belongs to the enclosing set.
        (["x-fan-in"], ("x-fan-in",)),
        # The route names one more fan-in actor, for the nested set.
        (["x-fan-in", "x-fan-in"], ("x-fan-in",)),
        (["check", "x-fan-in"], ("check", "x-fan-in")),
    ],
)
def test_a_nested_set_keeps_the_way_back_to_the_enclosing_one(ahead: list[str], rest: tuple[str, ...]) -> None:
    origin, item, _ = frames(generator, next=ahead, headers={"x-asya-fan-in": OUTER})
    assert origin.next == ("x-fan-in", *rest)
    assert header(origin)["outer"] == header(item)["outer"] == OUTER


@pytest.mark.rule("9.nesting.depth")
@pytest.mark.parametrize("call", [lambda _: fan_out([1], to=["score"]), lambda _: branches({"a": ["score"]})])
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_set_within_too_many_others_does_not_open(depth: int, call: Callable[[Any], Any]) -> None:
    outer = nested(depth, random.Random(depth), ("x-fan-in",))
    if depth < MAX_ENCLOSING_SETS:
        origin, item = frames(call, headers={"x-asya-fan-in": outer})
        assert header(origin)["outer"] == header(item)["outer"] == outer
        assert decode_header(origin.headers["x-asya-fan-in"]) is not None
        return
    with pytest.raises(HandlerFailed, match="a set has 16 enclosing sets at most") as caught:
        frames(call, headers={"x-asya-fan-in": outer})
    assert caught.value.error.type == "processing_error"


def test_the_payload_that_the_handler_changed_is_not_what_slice_0_carries() -> None:
    def handler(payload: dict[str, Any]) -> Iterator[FanOut]:
        payload["changed"] = True
        yield from fan_out([payload], to=["score"])

    origin, item = frames(handler, payload={"a": 1})
    assert origin.payload is None
    assert decode_value(item.payload or b"") == {"a": 1, "changed": True}


def before(_payload: Any) -> Iterator[Any]:
    yield {"a": 1}
    yield from fan_out([1], to=["score"])


def after(_payload: Any) -> Iterator[Any]:
    yield from fan_out([1], to=["score"])
    yield {"a": 1}


def twice(_payload: Any) -> Iterator[Any]:
    yield from fan_out([1], to=["score"])
    yield from fan_out([1], to=["score"])


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        (before, "gave 1 frame(s) and then fanned out"),
        (after, "fanned out and gave another frame after it"),
        (twice, "fanned out once more"),
    ],
)
def test_a_fan_out_beside_other_output_is_a_processing_error_that_says_so(
    handler: Callable[[Any], Any], problem: str
) -> None:
    with pytest.raises(HandlerFailed) as caught:
        frames(handler)
    assert caught.value.error.type == "processing_error"
    assert problem in caught.value.error.message
    assert "only output of its hop" in caught.value.error.message


def test_an_item_that_json_cannot_hold_is_named() -> None:
    with pytest.raises(HandlerFailed) as caught:
        frames(lambda _: fan_out([1, {"x": {2}}], to=["score"]))
    assert caught.value.error.type == "processing_error"
    assert "items[1]: $.x: a value of type set" in caught.value.error.message


@pytest.mark.parametrize(
    ("arguments", "kind", "problem"),
    [
        ({"items": "abc", "to": ["a"]}, "TypeError", "items must be a list, not a str"),
        ({"items": {"a": 1}, "to": ["a"]}, "TypeError", "items must be a list, not a dict"),
        ({"items": [], "to": "abc"}, "TypeError", "to must be a list, not a str"),
        ({"items": [], "to": ["A B"]}, "ValueError", "'A B' is not a DNS label"),
        ({"items": [], "to": ["a"], "at": ""}, "ValueError", "name is empty"),
        ({"items": [], "to": ["a"], "into": "results"}, "ValueError", "not a JSON pointer"),
        ({"items": range(MAX_ITEMS + 1), "to": ["a"]}, "ValueError", "sets nest"),
        ({"items": 3, "to": ["a"]}, "TypeError", "items must be a list, not a int"),
    ],
)
def test_mistakes_are_raised_where_they_are_made(arguments: dict[str, Any], kind: str, problem: str) -> None:
    with pytest.raises(HandlerFailed) as caught:
        frames(lambda _: fan_out(**arguments))
    assert caught.value.error.type == kind
    assert problem in caught.value.error.message
    assert "test_fan_out.py" in caught.value.error.traceback


def test_items_may_come_from_any_iterable() -> None:
    assert len(frames(lambda _: fan_out((n for n in range(3)), to=("score",)))) == 4


def test_a_handler_in_envelope_mode_may_fan_out_too() -> None:
    def handler(envelope: dict[str, Any]) -> FanOut:
        return fan_out(envelope["payload"], to=["score"])

    origin, first, second = frames(handler, mode=EnvelopeMode(), payload=[1, 2])
    assert origin.next == ("x-fan-in", "post")
    assert [decode_value(frame.payload or b"") for frame in (first, second)] == [1, 2]
