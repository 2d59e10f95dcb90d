"""protocol §14: envelopes of older generations are upgraded on receipt."""

import json
from typing import Any

import pytest

from asya.capabilities.legacy.envelopes import read_envelope
from asya.protocol import ids
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Route
from tests.doubles.envelopes import message

LEGACY: list[tuple[dict[str, Any], Route | str]] = [
    ({"actors": ["a", "b", "c"], "current": 0}, Route((), "a", ("b", "c"))),
    ({"actors": ["a", "b", "c"], "current": 1}, Route(("a",), "b", ("c",))),
    ({"actors": ["a", "b"], "current": 2}, Route(("a", "b"), "", ())),
    ({"actors": ["a"]}, Route((), "a", ())),
    ({"steps": ["a", "b"], "current": 1}, Route(("a",), "b", ())),
    ({"actors": ["x"], "current": 0, "prev": ["p"], "curr": "c", "next": []}, Route(("p",), "c", ())),
    ({"actors": ["a"], "current": -1}, "route.current is -1"),
    ({"actors": ["a"], "current": 2}, "route.current is 2; route.actors has 1"),
    ({"actors": ["a"], "current": "0"}, "route.current"),
    ({"actors": [], "current": 0}, "route.actors is empty"),
    ({"steps": [], "current": 0}, "route.steps is empty"),
    ({"actors": "abc"}, "route.actors"),
    ({"actors": ["a", 5]}, "route.actors"),
]


@pytest.mark.rule("14.routes")
@pytest.mark.parametrize(("route", "expected"), LEGACY)
def test_protocol_14_legacy_routes_are_upgraded_on_receipt(route: dict[str, Any], expected: Route | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(ParseError) as caught:
            read_envelope(message(route=route))
        assert expected in str(caught.value)
        assert caught.value.envelope_id == "env-1"
        return
    envelope = read_envelope(message(route=route))
    assert envelope.route == expected
    assert set(json.loads(encode(envelope))["route"]) == {"prev", "curr", "next"}


@pytest.mark.rule("14.missing-id")
def test_protocol_14_only_a_steps_envelope_may_lack_its_id() -> None:
    steps = {"steps": ["a"], "current": 0}
    assert read_envelope(message(id=..., job_id="job-9", route=steps)).id == "job-9"
    without = read_envelope(message(id=..., route=steps), message_id="m-1")
    assert without.id == ids.id_of_message("m-1") == read_envelope(message(id=..., route=steps), message_id="m-1").id
    for route in (
        {"actors": ["a"]},
        {"prev": [], "curr": "a", "next": []},
        {"prev": [], "curr": "a", "next": [], **steps},
    ):
        with pytest.raises(ParseError, match="id is missing"):
            read_envelope(message(id=..., job_id="job-9", route=route), message_id="m-1")
    with pytest.raises(ParseError, match="job_id must be a string"):
        read_envelope(message(id=..., job_id=3, route=steps))
