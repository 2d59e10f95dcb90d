"""Keeps the work of a mesh apart from the rest of its process: one mesh at a time, with its own loop, clock and endpoints."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from asya.testing.isolation import endpoints
from asya.testing.isolation.clock import own_clock

# The doubles, the variables and the modules of a mesh are those of the whole process.
_AT_WORK = threading.RLock()


@contextmanager
def isolated(allowed_endpoints: tuple[str, ...] = ()) -> Iterator[None]:
    """Let a mesh work in the calling thread, after those that work in other threads."""
    with _AT_WORK, _no_running_loop(), own_clock(), endpoints.closed(allowed_endpoints):
        yield


@contextmanager
def _no_running_loop() -> Iterator[None]:
    """Let code of the mesh run loops of its own, although the test runs in one; functions of Lambda have none either."""
    loop = asyncio._get_running_loop()
    if loop is None:
        yield
        return
    task = asyncio.current_task(loop)
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio.tasks._enter_task(loop, task)
