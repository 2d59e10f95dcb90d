"""The search for the sets of an envelope is bounded, whatever its sender writes (`protocol §4.keys.sets`)."""

import json
from typing import Any

import pytest

from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.task_key import WrongKeyError
from asya.senders.task_keys import PLACES_LIMIT, check_places


def place(position: int, outer: Any = None, generation: int = 0) -> dict[str, Any]:
    own = {"actor": "x-fan-in", "set_id": ids.set_id("own", generation, position), "origin_id": "own"}
    own |= {"slice_index": 0, "slice_count": 2, "aggregation_key": ""}
    return own if outer is None else own | {"outer": outer}


def check(position: int, header: Any, generation: int = 0) -> None:
    headers = {"x-asya-fan-in": header} | ({"x-asya-generation": generation} if generation else {})
    route = {"prev": ["a"] * position, "curr": "b", "next": []}
    check_places(decode(json.dumps({"id": "own", "route": route, "headers": headers, "payload": 1}).encode()))


@pytest.mark.rule("4.keys.sets")
@pytest.mark.parametrize("generation", [0, 2])
def test_nested_sets_of_each_generation_are_found(generation: int) -> None:
    check(900, place(700, place(3, place(0)), generation), generation)


@pytest.mark.rule("4.keys.sets")
def test_no_message_keeps_a_function_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    real = ids.set_id
    nested = place(9_999)
    for position in range(10_000, 10_050):
        nested = place(position, nested)
    nested |= {"set_id": real("own", 9_999, 90_000), "outer": nested | {"set_id": real("own", 0, 0)}}

    def counted(*parts: Any) -> str:
        tried.append(parts)
        return real(*parts)

    monkeypatch.setattr(ids, "set_id", counted)
    with pytest.raises(WrongKeyError, match="is not one of"):
        check(100_000, nested, generation=9_999)
    assert len(tried) == PLACES_LIMIT
