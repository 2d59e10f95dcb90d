"""The ABI commands that generators yield (`protocol §7`)."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from asya.protocol.envelope import Frame
from asya.protocol.strict_json import decode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerFailed, HandlerInvoker
from tests.unit.asya.runtime.handler_calls import FOREVER, frames, view


@pytest.mark.rule("6.yields-tuple", "7.SET")
def test_protocol_7_commands_are_answered_and_change_later_frames_only() -> None:
    answers: list[Any] = []

    def handler(_: Any) -> Iterator[Any]:
        answers.append((yield ("GET", ".id")))
        yield {"n": 0}
        yield ("SET", ".route.next", ["other"])
        yield ("SET", ".headers.colour", "red")
        yield ("DEL", ".headers.tenant")
        yield ("SET", ".status.note", [1])
        yield {"n": 1}
        yield ("DEL", ".route.next")
        yield {"n": 2}

    first, second, third = frames(handler)
    assert answers == ["env-1"]
    assert first == Frame(first.payload)
    assert second.next == ("other",)
    assert {name: raw if raw is None else bytes(raw) for name, raw in second.headers.items()} == {
        "colour": b'"red"',
        "tenant": None,
    }
    assert {name: bytes(raw or b"") for name, raw in second.status.items()} == {"note": b"[1]"}
    assert third.next == ()


@pytest.mark.rule("6.yields-tuple", "7.errors")
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_protocol_7_a_wrong_command_is_raised_where_it_was_yielded(kind: str) -> None:
    async def async_handler(_: Any) -> AsyncIterator[Any]:
        try:
            yield ("SET", ".id", "other")
        except PermissionError as error:
            yield str(error)
        yield ("NOPE",)

    def handler(_: Any) -> Iterator[Any]:
        try:
            yield ("SET", ".id", "other")
        except PermissionError as error:
            yield str(error)
        yield ("NOPE",)

    running = HandlerInvoker(handler if kind == "sync" else async_handler).frames(None, view, FOREVER)
    assert "may not be written" in str(decode_value(next(running).payload))
    with pytest.raises(HandlerFailed) as caught:
        next(running)
    assert caught.value.error.type == "RuntimeError"
    assert "unknown command 'NOPE'" in caught.value.error.message
    assert f'"{__file__}"' in caught.value.error.traceback


@pytest.mark.rule("7.SET")
def test_protocol_7_what_is_set_must_be_json() -> None:
    def handler(_: Any) -> Iterator[Any]:
        yield ("SET", ".headers.bad", {1, 2})
        yield {}

    with pytest.raises(HandlerFailed) as caught:
        frames(handler)
    assert caught.value.error.message.startswith(
        "the handler gave a value that is not JSON: .headers['bad']: $: a value of type set"
    )


def test_protocol_7_the_view_is_made_only_for_generators() -> None:
    def no_view() -> EnvelopeView:
        raise AssertionError("not needed")

    assert len(list(HandlerInvoker(lambda _: 1).frames(None, no_view, FOREVER))) == 1
