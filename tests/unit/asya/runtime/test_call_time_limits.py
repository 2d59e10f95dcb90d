"""A time limit ends handlers of every kind (`protocol §5.7`, `§5.11`)."""

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from asya.runtime.call import HandlerTimedOut
from tests.unit.asya.runtime.handler_calls import FOREVER, as_async, frames, payloads


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


def sleeping_in_a_clean_up(_: Any) -> None:
    """Python ignores an exception of the callback of a weak reference, so the first alarm is lost."""
    thing = type("Thing", (), {})()
    _reference = weakref.ref(thing, lambda _: time.sleep(FOREVER))
    del thing
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
        sleeping_in_a_clean_up,
        endless_generator,
    ],
)
def test_a_time_limit_ends_every_kind_of_handler_and_the_process_goes_on(
    handler: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asya.runtime.call.BLOCKED_LOOP_GRACE", 0.05)
    monkeypatch.setattr("asya.runtime.time_limit.REPEAT_SECONDS", 0.2)

    async def fine(_: Any) -> int:
        await asyncio.sleep(0)
        return 7

    with pytest.raises(HandlerTimedOut):
        frames(handler, seconds=0.05)
    assert payloads(fine) == [7]
    assert payloads(as_async([1, 2])) == [1, 2]
