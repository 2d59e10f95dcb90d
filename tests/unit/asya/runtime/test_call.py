"""The frames of handlers of every kind (`protocol §6`)."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from asya.protocol.strict_json import decode_value
from asya.runtime.call import HandlerFailed, HandlerInvoker
from asya.runtime.modes import PayloadMode
from tests.unit.asya.runtime.handler_calls import FOREVER, as_async, as_sync, frames, payloads, view


@pytest.mark.rule("6.returns-value")
@pytest.mark.parametrize(
    "value", [{}, [], 0, "", False, {"a": 1}, [1, 2], {"error": "no", "message": "x"}, {"status": "ok", "data": 1}, 1.5]
)
def test_a_returned_value_is_exactly_one_frame(value: Any) -> None:
    async def later(_: Any) -> Any:
        return value

    assert payloads(lambda _: value) == [value]
    assert payloads(later) == [value]


@pytest.mark.rule("6.returns-value")
def test_a_returned_list_or_tuple_is_one_payload() -> None:
    assert payloads(lambda _: [1, 2]) == [[1, 2]]
    assert payloads(lambda _: ("GET", ".id")) == [["GET", ".id"]]


@pytest.mark.rule("6.returns-none")
def test_none_is_no_frame() -> None:
    async def later(_: Any) -> Any:
        return None

    assert payloads(lambda _: None) == payloads(later) == []


@pytest.mark.rule("6.yields")
@pytest.mark.parametrize("kind", [as_sync, as_async])
def test_n_yields_are_n_frames_and_none_is_nothing(kind: Callable[[list[Any]], Callable[[Any], Any]]) -> None:
    assert payloads(kind([{"a": 1}, None, 0, [], "x", None])) == [{"a": 1}, 0, [], "x"]
    assert payloads(kind([])) == []
    assert payloads(kind([None])) == []


@pytest.mark.rule("6.yields")
def test_a_generators_own_return_value_is_ignored() -> None:
    def handler(_: Any) -> Generator[Any, Any, Any]:
        yield 1
        return {"ignored": True}

    assert payloads(handler) == [1]


@pytest.mark.rule("6.fan_out_lists")
def test_fan_out_lists_gives_one_frame_per_item_only_where_asked_for() -> None:
    assert payloads(lambda _: [1, 2], lists_fan_out=True) == [1, 2]
    assert payloads(lambda _: [], lists_fan_out=True) == []
    assert payloads(lambda _: {"a": 1}, lists_fan_out=True) == [{"a": 1}]
    with pytest.raises(HandlerFailed):
        next(HandlerInvoker(lambda _: [1, {2}], lists_fan_out=True).frames(None, view, FOREVER))


@pytest.mark.rule("6.kinds")
def test_methods_partials_and_callables_work() -> None:
    class Model:
        def __call__(self, payload: Any) -> Any:
            return payload + 1

        async def predict(self, payload: Any) -> Any:
            return payload + 2

    assert payloads(Model(), 1) == [2]
    assert payloads(Model().predict, 1) == [3]


@pytest.mark.rule("6.not-json")
@pytest.mark.parametrize("kind", [as_sync, as_async])
def test_what_json_cannot_hold_is_a_processing_error_after_the_frames_before(kind: Callable[[list[Any]], Any]) -> None:
    running = HandlerInvoker(kind([1, {"a": {2}}])).frames(None, view, FOREVER)
    assert decode_value(next(running).payload) == 1
    with pytest.raises(HandlerFailed) as caught:
        next(running)
    assert caught.value.error.type == "processing_error"
    assert (
        caught.value.error.message
        == "the handler gave a value that is not JSON: $.a: a value of type set has no form in JSON"
    )


class Unreadable(dict[str, Any]):
    def __eq__(self, other: object) -> bool:
        raise OSError("never compare me")

    __hash__ = None

    def items(self) -> Any:
        raise OSError("never read me")


def test_a_value_that_raises_when_it_is_read_is_the_handlers_error() -> None:
    with pytest.raises(HandlerFailed) as caught:
        frames(lambda _: {"a": Unreadable(b=1)})
    assert caught.value.error.type == "OSError"


@pytest.mark.rule("5.8")
def test_frames_are_serialised_at_the_yield() -> None:
    def handler(_: Any) -> Iterator[Any]:
        value = {"n": 1}
        yield value
        value["n"] = 2
        yield value

    assert payloads(handler) == [{"n": 1}, {"n": 2}]


def test_one_event_loop_serves_all_calls_so_that_clients_survive() -> None:
    loops = []

    async def handler(_: Any) -> None:
        loops.append(asyncio.get_running_loop())

    frames(handler)
    frames(handler)
    assert loops[0] is loops[1]


def test_the_argument_is_adapted_and_a_mismatch_is_the_handlers_error() -> None:
    assert payloads(lambda value: value * 2, "21", mode=PayloadMode(int)) == [42]
    with pytest.raises(HandlerFailed) as caught:
        frames(lambda value: value, "x", mode=PayloadMode(int))
    assert caught.value.error.type == "ValueError"
