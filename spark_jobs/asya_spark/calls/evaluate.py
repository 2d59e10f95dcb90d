"""Calls a job function of any kind and gives its frames as lines of JSON (`protocol §6`, `§7`)."""

import asyncio
import copy
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from asya.contracts.codec import plain
from asya.protocol import headers
from asya.runtime.abi import EnvelopeView, execute
from asya.runtime.fan_out import RECEIVED, FanOut, FanOutError, OutputGuard, with_digits
from asya_spark import strict_json
from asya_spark.manifest import Envelope


class ProcessingError(Exception):
    """A job returned or yielded a value that JSON cannot hold."""


Publish = Callable[[Mapping[str, Any]], None]


Give = Callable[[Any], Any]


def frames(
    call: Callable[[], Any], envelope: Envelope, publish: Publish | None = None, give: Give | None = None
) -> Iterator[str]:
    """Calls the job and gives each frame as JSON text: payload, and the changes of route, headers and status.

    Args:
        call: calls the job function.
        publish: publishes a partial.
        give: makes the JSON value of a result, if the job says its type.

    Raises:
        ProcessingError: if JSON cannot hold a value.
        ContractError: if a result does not have its type.
        BaseException: the error that the job raised.
    """
    result = call()
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if inspect.isgenerator(result):
        yield from _generator_frames(result, _view(envelope, publish), envelope, give)
    elif inspect.isasyncgen(result):
        yield from _generator_frames(_synchronous(result), _view(envelope, publish), envelope, give)
    elif isinstance(result, FanOut):
        yield from _slices(_with_digits(result, envelope), _view(envelope), envelope)
    elif result is not None:
        yield f'{{"payload":{_given(_with_digits(result, envelope), give)}}}'


def _with_digits(output: Any, envelope: Envelope) -> Any:
    return output if envelope.digits is None else with_digits(output, envelope.digits)


def _generator_frames(
    generator: Generator[Any, Any, Any], view: EnvelopeView, envelope: Envelope, give: Give | None
) -> Iterator[str]:
    """The frames of a generator: bare yields are ignored, tuples are commands, other values are frames."""
    guard = OutputGuard()
    try:
        value = next(generator)
        while True:
            if isinstance(value, tuple):
                try:
                    answer = execute(view, value)
                except Exception as error:  # noqa: BLE001 - raised in the job, at the command
                    value = generator.throw(error)
                    continue
                value = generator.send(answer)
            else:
                if value is not None:
                    _check_output(guard, value)
                    value = _with_digits(value, envelope)
                    if isinstance(value, FanOut):
                        yield from _slices(value, view, envelope)
                    else:
                        yield _frame({"payload": _given(value, give)}, view, envelope)
                value = next(generator)
    except StopIteration:
        return
    finally:
        generator.close()


def _synchronous(source: AsyncGenerator[Any, Any]) -> Generator[Any, Any, Any]:
    """A synchronous generator over an async generator."""
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
            except Exception as error:  # noqa: BLE001 - raised in the job
                step = source.athrow(error)


async def _awaited(step: Any) -> Any:
    return await step


def _view(envelope: Envelope, publish: Publish | None = None) -> EnvelopeView:
    return EnvelopeView(
        id=envelope.id,
        parent_id=envelope.parent_id,
        prev=envelope.prev,
        curr=envelope.curr,
        next=list(envelope.next),
        headers=copy.deepcopy(envelope.headers),
        status=copy.deepcopy(envelope.status),
        publish_partial=publish,
    )


def _check_output(guard: OutputGuard, value: object) -> None:
    try:
        guard.check(value)
    except FanOutError as error:
        raise ProcessingError(str(error)) from None


def _slices(fan_out: FanOut, view: EnvelopeView, envelope: Envelope) -> Iterator[str]:
    """The frames of a fan-out: the origin, with the payload as received, and one frame for each item."""
    try:
        slices = list(fan_out.slices(view))
    except FanOutError as error:
        raise ProcessingError(str(error)) from None
    for fan_out_slice in slices:
        members = {"payload": _with_models(fan_out_slice.item)} if fan_out_slice.item is not RECEIVED else {}
        slice_view = replace(
            view,
            next=list(fan_out_slice.next),
            next_changed=True,
            headers={**view.headers, headers.FAN_IN: fan_out_slice.header},
        )
        yield _frame(members, slice_view, envelope)


def _frame(members: dict[str, str], view: EnvelopeView, envelope: Envelope) -> str:
    """The line of a frame: its payload, unless it is the received one, and the changes."""
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


def _given(value: Any, give: Give | None) -> str:
    return _encoded(value) if give is None else _with_models(give(value))


def _with_models(value: Any) -> str:
    """The JSON text of a value that may hold models, dates and decimals, each in the form of its own type."""
    try:
        return strict_json.encode(value)
    except strict_json.NotJsonError:
        return _encoded(plain(value))


def _encoded(value: Any) -> str:
    try:
        return strict_json.encode(value)
    except strict_json.NotJsonError as error:
        raise ProcessingError(f"the job gave a value that is not JSON: {error}") from None
