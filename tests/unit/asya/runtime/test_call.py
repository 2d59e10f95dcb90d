"""protocol §6: the frames of handlers of every kind; §5.7, §5.11: time limits and crashes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

from asya.protocol.frame import Frame
from asya.protocol.strict_json import decode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerCrashed, HandlerFailed, HandlerInvoker, HandlerTimedOut
from asya.runtime.modes import PayloadMode

FOREVER = 600.0
"""Seconds; a handler that takes so long ends only by its time limit."""


def view(**changes: Any) -> EnvelopeView:
    known: dict[str, Any] = {
        "id": "env-1",
        "parent_id": "",
        "prev": ("prep",),
        "curr": "infer",
        "next": ["post"],
        "headers": {"tenant": "acme", "x-asya-root": "env-0"},
        "status": {"phase": "processing", "attempt": 1},
    }
    return EnvelopeView(**(known | changes))


def frames(handler: Callable[[Any], Any], payload: Any = None, seconds: float = FOREVER, **options: Any) -> list[Frame]:
    return list(HandlerInvoker(handler, **options).frames(payload, view, seconds))


def payloads(handler: Callable[[Any], Any], payload: Any = None, **options: Any) -> list[Any]:
    return [decode_value(frame.payload) for frame in frames(handler, payload, **options)]


def as_sync(values: list[Any]) -> Callable[[Any], Any]:
    def handler(_: Any) -> Iterator[Any]:
        yield from values

    return handler


def as_async(values: list[Any]) -> Callable[[Any], Any]:
    async def handler(_: Any) -> AsyncIterator[Any]:
        for value in values:
            await asyncio.sleep(0)
            yield value

    return handler


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


class OwnError(ValueError):
    """The handlers below raise this error."""


def failing(kind: str) -> Callable[[Any], Any]:
    def plain(_: Any) -> Any:
        raise OwnError("no")

    async def coroutine(_: Any) -> Any:
        raise OwnError("no")

    def generator(_: Any) -> Iterator[Any]:
        yield 1
        raise OwnError("no")

    async def async_generator(_: Any) -> AsyncIterator[Any]:
        yield 1
        raise OwnError("no")

    handlers: dict[str, Callable[[Any], Any]] = {
        "plain": plain,
        "coroutine": coroutine,
        "generator": generator,
        "async_generator": async_generator,
    }
    return handlers[kind]


@pytest.mark.rule("6.error-names")
@pytest.mark.parametrize("kind", ["plain", "coroutine", "generator", "async_generator"])
def test_an_error_is_described_and_its_traceback_begins_in_the_users_code(kind: str) -> None:
    with pytest.raises(HandlerFailed) as caught:
        frames(failing(kind))
    error = caught.value.error
    assert (error.type, error.message) == (f"{__name__}.OwnError", "no")
    assert error.mro == ("ValueError", "Exception")
    first_place = error.traceback.splitlines()[1]
    assert f'"{__file__}"' in first_place
    assert "runtime/call.py" not in error.traceback
    assert "asyncio" not in error.traceback


@pytest.mark.parametrize(
    "raised", [StopIteration, StopAsyncIteration, TimeoutError, asyncio.CancelledError, GeneratorExit]
)
def test_errors_with_a_meaning_for_generators_are_still_the_handlers(raised: type[BaseException]) -> None:
    def plain(_: Any) -> Any:
        raise raised

    async def coroutine(_: Any) -> Any:
        raise raised

    for handler in (plain, coroutine):
        with pytest.raises(HandlerFailed):
            frames(handler)


@pytest.mark.rule("5.11.timeout-error")
def test_a_timeout_error_of_the_handlers_own_is_an_ordinary_error() -> None:
    async def handler(_: Any) -> Any:
        await asyncio.wait_for(asyncio.sleep(FOREVER), timeout=0.001)

    with pytest.raises(HandlerFailed) as caught:
        frames(handler)
    assert caught.value.error.type == "TimeoutError"


class OwnExit(BaseException):
    """A BaseException that is neither an Exception nor an exit."""


@pytest.mark.rule("5.11.crash")
@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, OwnExit])
def test_base_exceptions_are_crashes_and_the_next_call_works(raised: type[BaseException]) -> None:
    def plain(_: Any) -> Any:
        raise raised(3)

    async def coroutine(_: Any) -> Any:
        await asyncio.sleep(0)
        raise raised(3)

    def generator(_: Any) -> Iterator[Any]:
        yield 1
        raise raised(3)

    async def async_generator(_: Any) -> AsyncIterator[Any]:
        yield 1
        raise raised(3)

    async def fine(_: Any) -> int:
        await asyncio.sleep(0)
        return 7

    for handler in (plain, coroutine, generator, async_generator):
        with pytest.raises(HandlerCrashed) as caught:
            frames(handler)
        assert caught.value.error.type.endswith(raised.__name__)
        assert payloads(fine) == [7]


def sleeping(_: Any) -> None:
    time.sleep(FOREVER)


async def sleeping_coroutine(_: Any) -> None:
    await asyncio.sleep(FOREVER)


async def blocking_coroutine(_: Any) -> None:
    time.sleep(FOREVER)


async def stubborn_coroutine(_: Any) -> None:
    try:
        await asyncio.sleep(FOREVER)
    except asyncio.CancelledError:
        time.sleep(FOREVER)


def sleeping_generator(_: Any) -> Iterator[int]:
    yield 1
    time.sleep(FOREVER)


async def sleeping_async_generator(_: Any) -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(FOREVER)


async def blocking_async_generator(_: Any) -> AsyncIterator[int]:
    yield 1
    time.sleep(FOREVER)


def endless_generator(_: Any) -> Iterator[None]:
    while True:
        yield None


@pytest.mark.rule("6.kinds")
@pytest.mark.parametrize(
    "handler",
    [
        sleeping,
        sleeping_coroutine,
        blocking_coroutine,
        stubborn_coroutine,
        sleeping_generator,
        sleeping_async_generator,
        blocking_async_generator,
        endless_generator,
    ],
)
def test_a_time_limit_ends_every_kind_of_handler_and_the_process_goes_on(
    handler: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asya.runtime.call.BLOCKED_LOOP_GRACE", 0.05)

    async def fine(_: Any) -> int:
        await asyncio.sleep(0)
        return 7

    with pytest.raises(HandlerTimedOut):
        frames(handler, seconds=0.05)
    assert payloads(fine) == [7]
    assert payloads(as_async([1, 2])) == [1, 2]


def test_one_event_loop_serves_all_calls_so_that_clients_survive() -> None:
    loops = []

    async def handler(_: Any) -> None:
        loops.append(asyncio.get_running_loop())

    frames(handler)
    frames(handler)
    assert loops[0] is loops[1]


def test_an_abandoned_generator_cleans_up_even_if_that_raises() -> None:
    cleaned = []

    def generator(_: Any) -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            cleaned.append("sync")
            raise OwnExit

    async def async_generator(_: Any) -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            cleaned.append("async")

    for handler in (generator, async_generator):
        running = HandlerInvoker(handler).frames(None, view, FOREVER)
        next(running)
        running.close()
    assert cleaned == ["sync", "async"]


def test_the_argument_is_adapted_and_a_mismatch_is_the_handlers_error() -> None:
    assert payloads(lambda value: value * 2, "21", mode=PayloadMode(int)) == [42]
    with pytest.raises(HandlerFailed) as caught:
        frames(lambda value: value, "x", mode=PayloadMode(int))
    assert caught.value.error.type == "ValueError"


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
