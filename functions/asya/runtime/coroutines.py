"""Running the coroutines of handlers, on one event loop per process, under a time limit (`protocol §6`)."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from asya.runtime.time_limit import CoroutineTimedOut, Stopwatch, TimeLimitReached


def awaited(awaitable: Awaitable[Any], watch: Stopwatch) -> Any:
    """What an awaitable comes to.

    Raises:
        CoroutineTimedOut: if its time was up first; it has been cancelled then.
        Exception: whatever it raises.
    """

    async def bounded() -> Any:
        limit = asyncio.timeout(watch.left)
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
        _discard_loop()  # it was torn out of the middle of a step; what runs on it can no longer be trusted
        raise


_current_loop: asyncio.AbstractEventLoop | None = None


def _loop() -> asyncio.AbstractEventLoop:
    """One event loop per process, so that a handler's own clients survive from call to call."""
    global _current_loop  # noqa: PLW0603 - the process's loop, made on first use
    if _current_loop is None or _current_loop.is_closed():
        _current_loop = asyncio.new_event_loop()
    return _current_loop


def _discard_loop() -> None:
    global _current_loop  # noqa: PLW0603 - as above
    asyncio._set_running_loop(None)  # the alarm may have struck just before the loop did this itself
    if _current_loop is not None and not _current_loop.is_closed():
        _current_loop.close()
    _current_loop = None
