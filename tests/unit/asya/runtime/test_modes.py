"""protocol §6, `handler_mode`: handlers with whole envelopes, in the present and the legacy shape."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya.protocol.envelope import Frame
from asya.protocol.strict_json import decode_value
from asya.runtime.call import HandlerFailed, HandlerInvoker
from asya.runtime.modes import EndMode, EnvelopeMode
from tests.unit.asya.runtime.handler_calls import view

NEW, OLD = EnvelopeMode("envelope"), EnvelopeMode("envelope-v1")


def run(handler: Any, mode: EnvelopeMode, payload: Any = None, **options: Any) -> list[Frame]:
    return list(HandlerInvoker(handler, mode, **options).frames(payload, view, 5.0))


def argument_of(mode: EnvelopeMode, **changes: Any) -> Any:
    arguments: list[Any] = []
    list(HandlerInvoker(arguments.append, EndMode(mode)).frames({"n": 1}, lambda: view(**changes), 5.0))
    return arguments[0]


def test_the_handler_gets_the_whole_envelope() -> None:
    assert argument_of(NEW, parent_id="env-0") == {
        "id": "env-1",
        "parent_id": "env-0",
        "route": {"prev": ["prep"], "curr": "infer", "next": ["post"]},
        "headers": {"tenant": "acme", "x-asya-root": "env-0"},
        "status": {"phase": "processing", "attempt": 1},
        "payload": {"n": 1},
    }


@pytest.mark.rule("14.envelope-v1")
def test_in_the_legacy_shape_the_route_is_actors_and_current() -> None:
    assert argument_of(OLD)["route"] == {"actors": ["prep", "infer", "post"], "current": 1}
    at_the_end = argument_of(OLD, prev=("prep", "infer"), curr="", next=[])
    assert at_the_end["route"] == {"actors": ["prep", "infer"], "current": 2}


def advanced(envelope: Any, *ahead: str, **changes: Any) -> Any:
    route = {"prev": ["prep", "infer"], "curr": ahead[0] if ahead else "", "next": list(ahead[1:])}
    return envelope | {"route": route, "payload": {"done": True}} | changes


@pytest.mark.parametrize("ahead", [("post",), ("rescue", "post"), ()])
def test_the_handler_shifts_the_route_itself(ahead: tuple[str, ...]) -> None:
    (frame,) = run(lambda envelope: advanced(envelope, *ahead), NEW)
    assert frame.next == ahead
    assert decode_value(frame.payload) == {"done": True}
    assert frame.headers == {}
    (legacy,) = run(lambda envelope: envelope | {"route": {"actors": ["prep", "infer", *ahead], "current": 2}}, OLD)
    assert legacy.next == ahead


def test_the_handler_may_give_several_envelopes_or_none() -> None:
    def split(envelope: Any) -> Iterator[Any]:
        yield advanced(envelope, "post")
        yield None
        yield advanced(envelope, "rescue")

    assert [frame.next for frame in run(split, NEW)] == [("post",), ("rescue",)]
    assert run(lambda _: None, NEW) == []
    assert len(run(lambda envelope: [advanced(envelope), advanced(envelope)], NEW, lists_fan_out=True)) == 2


def test_a_handler_may_change_all_but_the_managed_headers() -> None:
    changed = {"mine": [1], "x-asya-root": "forged", "x-asya-new": "forged", "x-asya-fan-in": {"set_id": "s"}}
    (frame,) = run(lambda envelope: advanced(envelope, headers=changed, id="forged", status={"phase": "failed"}), NEW)
    assert {name: raw if raw is None else bytes(raw) for name, raw in frame.headers.items()} == {
        "mine": b"[1]",
        "x-asya-fan-in": b'{"set_id":"s"}',
        "tenant": None,
    }
    assert frame.status == {}
    (without,) = run(lambda envelope: {"route": advanced(envelope)["route"], "payload": 1}, NEW)
    assert without.headers == {}


WRONG: list[tuple[EnvelopeMode, Any, str]] = [
    (NEW, "text", "gives whole envelopes, not a str"),
    (NEW, [], "gives whole envelopes, not a list"),
    (NEW, {"payload": 1}, "has no route"),
    (NEW, {"route": {"prev": ["prep", "infer"], "curr": "", "next": []}}, "has no payload"),
    (NEW, {"payload": 1, "route": []}, "route must be an object, not a list"),
    (NEW, {"payload": 1, "route": {"prev": ["prep"], "curr": "infer", "next": ["post"]}}, "route.prev must be"),
    (NEW, {"payload": 1, "route": {"prev": ["other", "infer"], "curr": "", "next": []}}, "route.prev must be"),
    (NEW, {"payload": 1, "route": {"prev": ["prep", "infer"], "curr": None, "next": []}}, "route.curr must be a text"),
    (
        NEW,
        {"payload": 1, "route": {"prev": ["prep", "infer"], "curr": "", "next": "post"}},
        "route.next must be a list",
    ),
    (NEW, {"payload": 1, "route": {"prev": ["prep", "infer"], "curr": "", "next": [1]}}, "route.next must be a list"),
    (OLD, {"payload": 1, "route": {"actors": ["prep", "infer", "post"], "current": 1}}, "route.current must be 2"),
    (OLD, {"payload": 1, "route": {"actors": ["prep", "infer", "post"]}}, "it is None"),
    (OLD, {"payload": 1, "route": {"actors": ["prep", "renamed"], "current": 2}}, "route.actors must begin with"),
    (OLD, {"payload": 1, "route": {"actors": ["infer"], "current": 2}}, "route.actors must begin with"),
    (
        NEW,
        {"payload": 1, "route": {"prev": ["prep", "infer"], "curr": "", "next": []}, "headers": 5},
        "headers must be",
    ),
]


@pytest.mark.rule("6.envelope-mode")
@pytest.mark.parametrize(("mode", "output", "problem"), WRONG)
def test_the_actors_done_and_the_own_name_must_stay(mode: EnvelopeMode, output: Any, problem: str) -> None:
    with pytest.raises(HandlerFailed) as caught:
        run(lambda _: output, mode)
    assert caught.value.error.type == "ValueError"
    assert problem in caught.value.error.message


def test_a_value_that_is_not_json_is_a_processing_error_in_envelope_mode() -> None:
    with pytest.raises(HandlerFailed) as caught:
        run(lambda envelope: advanced(envelope, payload={1, 2}), NEW)
    assert caught.value.error.type == "processing_error"
    with pytest.raises(HandlerFailed) as caught:
        run(lambda envelope: advanced(envelope, headers={"mine": {1}}), NEW)
    assert ".headers['mine']: $: a value of type set" in caught.value.error.message


def test_the_return_value_of_an_end_actor_is_ignored() -> None:
    outputs: list[Any] = [{}, None, {1, 2}, "text"]
    while outputs:
        list(HandlerInvoker(lambda _: outputs.pop(), EndMode(NEW)).frames(None, view, 5.0))
