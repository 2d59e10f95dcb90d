"""Calls handlers on one envelope, and makes generators of both kinds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from asya.protocol.envelope import Frame
from asya.protocol.strict_json import decode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.call import HandlerInvoker

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
