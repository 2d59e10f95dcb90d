"""Runs the coroutines of handlers on one event loop per process, under a time limit (`protocol §6`)."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from asya.runtime.time_limit import CoroutineTimedOut, TimeBudget, TimeLimitReached


def run_awaitable(awaitable: Awaitable[Any], budget: TimeBudget) -> Any:
    """Run an awaitable and return its result.

    Raises:
        CoroutineTimedOut: the time limit was reached, and the awaitable was canceled.
        Exception: the awaitable raised it.
    """

    async def bounded() -> Any:
        limit = asyncio.timeout(budget.remaining)
        try:
            async with limit:
                return await awaitable
        except TimeoutError:
            if limit.expired():
                raise CoroutineTimedOut from None
            raise

    try:
        return _loop().run_until_complete(bounded())
    except (TimeLimitReached, SystemExit, KeyboardInterrupt):
        _discard_loop()  # the interruption left the loop within a step, so its tasks are unreliable
        raise


_current_loop: asyncio.AbstractEventLoop | None = None


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of the process. Clients of a handler stay usable from call to call."""
    global _current_loop  # noqa: PLW0603 - the loop of the process, created on first use
    if _current_loop is None or _current_loop.is_closed():
        _current_loop = asyncio.new_event_loop()
    return _current_loop


def _discard_loop() -> None:
    global _current_loop  # noqa: PLW0603 - as above
    asyncio._set_running_loop(None)  # the alarm may have interrupted the loop just before this step
    if _current_loop is not None and not _current_loop.is_closed():
        _current_loop.close()
    _current_loop = None
