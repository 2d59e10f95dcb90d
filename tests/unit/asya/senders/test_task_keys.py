"""An envelope has the place in a set that its key says, and the search for its sets is bounded (`protocol §4.keys.sets`)."""

import json
from typing import Any

import pytest
from msgspec import Raw

from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.headers import MAX_ENCLOSING_SETS
from asya.protocol.slices import own_place
from asya.protocol.task_key import Step, Subject, WrongKeyError, child_key, sealed, verified
from asya.senders.task_keys import PLACES_LIMIT, check_places


def place(position: int, outer: Any = None, generation: int = 0) -> dict[str, Any]:
    own = {"actor": "x-fan-in", "set_id": ids.set_id("own", generation, position), "origin_id": "own"}
    own |= {"slice_index": 0, "slice_count": 2, "aggregation_key": ""}
    return own if outer is None else own | {"outer": outer}


def check(position: int, header: Any, generation: int = 0) -> None:
    headers = {"x-asya-fan-in": header} | ({"x-asya-generation": generation} if generation else {})
    route = {"prev": ["a"] * position, "curr": "b", "next": []}
    check_places(decode(json.dumps({"id": "own", "route": route, "headers": headers, "payload": 1}).encode()), "")


@pytest.mark.rule("4.keys.sets")
@pytest.mark.parametrize("generation", [0, 2])
def test_nested_sets_of_each_generation_are_found(generation: int) -> None:
    check(900, place(700, place(3, place(0)), generation), generation)


@pytest.mark.rule("4.keys.sets")
def test_no_message_keeps_a_function_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    real = ids.set_id
    nested = place(9_999)
    for position in range(10_000, 10_000 + MAX_ENCLOSING_SETS - 2):
        nested = place(position, nested)
    nested |= {"set_id": real("own", 9_999, 90_000), "outer": nested | {"set_id": real("own", 0, 0)}}

    def counted(*parts: Any) -> str:
        tried.append(parts)
        return real(*parts)

    monkeypatch.setattr(ids, "set_id", counted)
    with pytest.raises(WrongKeyError, match="is not one of"):
        check(100_000, nested, generation=9_999)
    assert len(tried) == PLACES_LIMIT


GIVEN = {"actor": "x-fan-in", "set_id": ids.set_id("parent", 0, 1), "origin_id": "parent"}
GIVEN |= {"slice_index": 1, "slice_count": 4, "aggregation_key": "/sums"}
OWN_SET = place(2)


def slice_with(header: dict[str, Any]) -> Envelope:
    route = Route(("a", "a", "a"), "b", ())
    raw = Raw(json.dumps(header).encode())
    return Envelope(id="own", parent_id="parent", route=route, headers={"x-asya-fan-in": raw}, payload=NULL)


@pytest.mark.rule("4.keys.sets")
@pytest.mark.parametrize("header", [GIVEN, GIVEN | {"outer": OWN_SET}, OWN_SET | {"outer": GIVEN}, OWN_SET])
def test_a_slice_keeps_its_place_and_opens_sets_of_its_own(header: dict[str, Any]) -> None:
    check_places(slice_with(header), own_place(slice_with(GIVEN)))


@pytest.mark.rule("4.keys.sets")
@pytest.mark.parametrize(
    "change",
    [
        *({"slice_index": 2}, {"slice_count": 2}, {"actor": "gather"}, {"aggregation_key": ""}),
        {"set_id": ids.set_id("parent", 0, 0)},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_slice_takes_the_place_of_no_other(change: dict[str, Any], *, is_nested: bool) -> None:
    """Otherwise the holder of one slice could give the others, or state how many there are."""
    header = GIVEN | change
    with pytest.raises(WrongKeyError, match=r"is not 'own'"):
        check_places(slice_with(OWN_SET | {"outer": header} if is_nested else header), own_place(slice_with(GIVEN)))


@pytest.mark.rule("4.keys.child", "4.keys.root")
def test_a_key_says_the_place_of_its_envelope() -> None:
    """That of a child comes from its parent, and that of an envelope which the crew sends from its header."""
    parent, secret = Envelope(id="parent", route=Route((), "a", ()), payload=NULL), b"s" * 32
    place_of = own_place(slice_with(GIVEN))
    child_raw = child_key(sealed(parent, secret), Step("parent", 1, 1, place_of))
    child_id = Step("parent", 1, 1).child_id(0)
    for raw, subject in (
        (child_raw, Subject(child_id, 0, "parent")),
        (sealed(slice_with(GIVEN), secret).headers["x-asya-key"], Subject("own", 0, "parent")),
    ):
        assert raw is not None
        assert verified(secret, raw, subject).own_place == place_of
        forged = Raw(bytes(raw).replace(place_of.encode(), b"0" * len(place_of)))
        with pytest.raises(WrongKeyError):
            verified(secret, forged, subject)
