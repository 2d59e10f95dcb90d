"""One call of a job: whatever kind of function it is, its frames as lines of JSON (`protocol §6`, `§7`)."""

import asyncio
import copy
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from asya.protocol import headers
from asya.runtime.abi import EnvelopeView, execute
from asya.runtime.fan_out import FanOut, FanOutError, OutputGuard
from asya_spark import strict_json
from asya_spark.manifest import Envelope


class ProcessingError(Exception):
    """A job gave something that JSON cannot hold."""


Say = Callable[[Mapping[str, Any]], None]


def frames(call: Callable[[], Any], envelope: Envelope, fly: Say | None = None) -> Iterator[str]:
    """Call the job and give each frame as JSON text: payload, and what changed of route, headers and status.

    Args:
        call: calls the user's function.
        fly: takes what it wants to be known at once.

    Raises:
        ProcessingError: for a value that is no JSON.
        BaseException: whatever the job raised.
    """
    result = call()
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if inspect.isgenerator(result):
        yield from _driven(result, _view(envelope, fly), envelope)
    elif inspect.isasyncgen(result):
        yield from _driven(_in_step(result), _view(envelope, fly), envelope)
    elif isinstance(result, FanOut):
        yield from _slices(result, _view(envelope), envelope)
    elif result is not None:
        yield f'{{"payload":{_encoded(result)}}}'


def _driven(generator: Generator[Any, Any, Any], view: EnvelopeView, envelope: Envelope) -> Iterator[str]:
    """Bare yields give nothing, tuples are commands, everything else is a frame."""
    guard = OutputGuard()
    try:
        value = next(generator)
        while True:
            if isinstance(value, tuple):
                try:
                    answer = execute(view, value)
                except Exception as error:  # noqa: BLE001 - the job's mistake is raised where it made it
                    value = generator.throw(error)
                    continue
                value = generator.send(answer)
            else:
                if value is not None:
                    _check_output(guard, value)
                    if isinstance(value, FanOut):
                        yield from _slices(value, view, envelope)
                    else:
                        yield _frame({"payload": _encoded(value)}, view, envelope)
                value = next(generator)
    except StopIteration:
        return
    finally:
        generator.close()


def _in_step(source: AsyncGenerator[Any, Any]) -> Generator[Any, Any, Any]:
    """An async generator, driven from ordinary code."""
    with asyncio.Runner() as runner:
        step: Any = source.asend(None)
        while True:
            try:
                value = runner.run(_awaited(step))
            except StopAsyncIteration:
                return
            try:
                answer = yield value
                step = source.asend(answer)
            except GeneratorExit:
                runner.run(_awaited(source.aclose()))
                raise
            except Exception as error:  # noqa: BLE001 - handed on to the job
                step = source.athrow(error)


async def _awaited(step: Any) -> Any:
    return await step


def _view(envelope: Envelope, fly: Say | None = None) -> EnvelopeView:
    return EnvelopeView(
        id=envelope.id,
        parent_id=envelope.parent_id,
        prev=envelope.prev,
        curr=envelope.curr,
        next=list(envelope.next),
        headers=copy.deepcopy(envelope.headers),
        status=copy.deepcopy(envelope.status),
        publish_partial=fly,
    )


def _check_output(guard: OutputGuard, value: object) -> None:
    try:
        guard.check(value)
    except FanOutError as error:
        raise ProcessingError(str(error)) from None


def _slices(given: FanOut, view: EnvelopeView, envelope: Envelope) -> Iterator[str]:
    """The frames of a fan-out: the origin, whose payload is the one received, and the items."""
    for part in given.slices(view):
        members = {"payload": _encoded(part.item)} if part.index else {}
        left = replace(
            view, next=list(part.next), next_changed=True, headers={**view.headers, headers.FAN_IN: part.header}
        )
        yield _frame(members, left, envelope)


def _frame(members: dict[str, str], view: EnvelopeView, envelope: Envelope) -> str:
    """A frame's line: its payload, if it has one of its own, and what changed."""
    if view.next_changed:
        members["next"] = _encoded(view.next)
    for name, before, after in (
        ("headers", envelope.headers, view.headers),
        ("status", envelope.status, view.status),
    ):
        changed = {key: item for key, item in after.items() if key not in before or before[key] != item}
        changed |= dict.fromkeys(key for key in before if key not in after)
        if changed:
            members[name] = _encoded(changed)
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"


def _encoded(value: Any) -> str:
    try:
        return strict_json.encode(value)
    except strict_json.NotJsonError as error:
        raise ProcessingError(f"the job gave no JSON: {error}") from None
