"""The errors and crashes of handlers of every kind (`protocol §5.11`, `§6`)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from asya.runtime.call import HandlerCrashed, HandlerFailed, HandlerInvoker
from tests.unit.asya.runtime.handler_calls import FOREVER, frames, payloads, view


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
