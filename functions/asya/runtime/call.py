"""One call of a handler: payload in, frames out, whatever kind of function it is (`protocol §6`)."""

import inspect
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo, describe_exception
from asya.protocol.frame import Frame
from asya.protocol.strict_json import NotJsonError
from asya.runtime.abi import EnvelopeView, execute
from asya.runtime.changes import Snapshot, slice_frames
from asya.runtime.fan_out import FanOut, FanOutError, OutputGuard
from asya.runtime.load import Handler
from asya.runtime.modes import Mode, PayloadMode
from asya.runtime.time_limit import WALL_TIMER, CoroutineTimedOut, Stopwatch, TimeLimitReached, Timer

# How much longer blocking code inside a coroutine may take before it is interrupted like any other.
BLOCKED_LOOP_GRACE = 0.5
# What an abandoned generator may take to clean up.
_CLOSING_SECONDS = 0.5

_OWN_FOLDER = os.path.dirname(__file__)
# Called by handlers: what they see of an error begins above it.
_HELPER = inspect.getfile(FanOut)
_log = logging.getLogger(__name__)


class HandlerFailed(Exception):  # noqa: N818 - the outcome of user code, not an error of ours
    """The handler raised, or gave something that JSON cannot hold."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.error = error


class HandlerCrashed(HandlerFailed):
    """The handler left by SystemExit or another BaseException."""


class HandlerTimedOut(Exception):  # noqa: N818 - as above
    """The handler did not finish in time and was interrupted."""


@dataclass(frozen=True, slots=True)
class Call:
    """How to call one handler.

    Attributes:
        mode: what it is given and what it gives (`handler_mode`).
        lists_fan_out: a returned list is one frame per item, as in the oldest generations (`fan_out_lists`).
        timer: what the time limits go by.
    """

    handler: Handler
    mode: Mode = field(default_factory=PayloadMode)
    lists_fan_out: bool = False
    timer: Timer = WALL_TIMER

    def frames(
        self, payload: Any, open_view: Callable[[], EnvelopeView], seconds: float
    ) -> Generator[Frame, None, None]:
        """Run the handler and give each frame as it comes. Closed before its end, it lets the handler clean up.

        Args:
            payload: the payload's value; the handler may mutate it.
            open_view: makes the envelope as it came; called only for those that can reach it: generators, envelope mode.
            seconds: time for the whole call.

        Raises:
            HandlerFailed, HandlerCrashed, HandlerTimedOut: how the call ended, if not by itself.
        """
        watch = Stopwatch(seconds, self.timer)
        result = _guarded(watch, lambda: self.handler(self.mode.argument(payload, open_view)))
        if inspect.isawaitable(result):
            awaitable = result
            result = _guarded(watch, lambda: _awaited(awaitable, watch), grace=BLOCKED_LOOP_GRACE)
        if inspect.isgenerator(result):
            yield from self._driven(_SyncSource(result, watch), open_view, watch)
        elif inspect.isasyncgen(result):
            yield from self._driven(_AsyncSource(result, watch), open_view, watch)
        elif self.lists_fan_out and isinstance(result, list):
            frames = [self._framed(item, open_view) for item in result]
            yield from [replace(frame, alone=len(frames) == 1) for frame in frames]
        elif isinstance(result, FanOut):
            yield from self._slices(result, open_view)
        elif result is not None:
            yield replace(self._framed(result, open_view), alone=True)

    def _driven(
        self, source: "_SyncSource | _AsyncSource", open_view: Callable[[], EnvelopeView], watch: Stopwatch
    ) -> Iterator[Frame]:
        """Pull a generator: bare yields give nothing, tuples are commands, everything else is a frame."""
        view = open_view()
        as_received = Snapshot.of(view)
        order = OutputGuard()
        answer: Any = None
        complaint: Exception | None = None
        try:
            while True:
                try:
                    value = _guarded(watch, lambda: source.resume(answer, complaint), grace=source.grace)  # noqa: B023
                except _Exhausted:
                    return
                answer, complaint = None, None
                if isinstance(value, tuple):
                    try:
                        answer = execute(view, value)
                    except Exception as error:  # noqa: BLE001 - the handler's mistake is raised where it made it
                        complaint = error.with_traceback(None)
                elif value is not None:
                    _note(order, value)
                    if isinstance(value, FanOut):
                        yield from self._slices(value, open_view, (as_received, view))
                    else:
                        yield self._framed(value, open_view, (as_received, view))
        finally:
            source.close()

    def _framed(
        self, value: Any, open_view: Callable[[], EnvelopeView], seen: tuple[Snapshot, EnvelopeView] | None = None
    ) -> Frame:
        """A value that the handler gave, serialised there and then."""
        try:
            return self.mode.frame(value, open_view, seen)
        except NotJsonError as error:
            raise _processing_error(f"the handler gave no JSON: {error}") from None
        except Exception as error:  # a mapping or a number of the user's own making may raise anything when it is read
            raise HandlerFailed(_described(error)) from error

    def _slices(
        self,
        given: FanOut,
        open_view: Callable[[], EnvelopeView],
        seen: tuple[Snapshot, EnvelopeView] | None = None,
    ) -> Iterator[Frame]:
        """The frames of a fan-out: the origin as it was received, and the items."""
        view = open_view()
        as_received, as_left = seen or (Snapshot.of(view), view)
        try:
            yield from slice_frames(given, as_received, as_left)
        except NotJsonError as error:
            raise _processing_error(f"the handler fanned out no JSON: {error}") from None


def _note(order: OutputGuard, value: object) -> None:
    try:
        order.note(value)
    except FanOutError as error:
        raise _processing_error(str(error)) from None


def _processing_error(message: str) -> HandlerFailed:
    return HandlerFailed(ErrorInfo(type="processing_error", message=message))


class _Exhausted(Exception):  # noqa: N818
    """The generator is done."""


class _SyncSource:
    grace = 0.0

    def __init__(self, generator: Generator[Any, Any, Any], watch: Stopwatch) -> None:
        self._generator = generator
        self._timer = watch.timer

    def resume(self, answer: Any, complaint: Exception | None) -> Any:
        try:
            return self._generator.throw(complaint) if complaint is not None else self._generator.send(answer)
        except StopIteration:
            raise _Exhausted from None

    def close(self) -> None:
        _close_quietly(self._timer, self._generator.close)


class _AsyncSource:
    @property
    def grace(self) -> float:
        return BLOCKED_LOOP_GRACE

    def __init__(self, generator: AsyncGenerator[Any, Any], watch: Stopwatch) -> None:
        self._generator = generator
        self._watch = watch

    def resume(self, answer: Any, complaint: Exception | None) -> Any:
        step = self._generator.athrow(complaint) if complaint is not None else self._generator.asend(answer)
        try:
            return _awaited(step, self._watch)
        except StopAsyncIteration:
            raise _Exhausted from None

    def close(self) -> None:
        watch = Stopwatch(_CLOSING_SECONDS, self._watch.timer)
        _close_quietly(watch.timer, lambda: _awaited(self._generator.aclose(), watch), BLOCKED_LOOP_GRACE)


def _close_quietly(timer: Timer, close: Callable[[], Any], grace: float = 0.0) -> None:
    """Let an abandoned generator run its `finally`; what that raises changes nothing any more, the hop's outcome is settled."""
    try:
        timer.run_within(_CLOSING_SECONDS + grace, close)
    except BaseException as error:  # noqa: BLE001 - user code again, it may leave in any way
        _log.warning("a generator that was not run to its end left its clean-up by %r", error)


def _guarded(watch: Stopwatch, run: Callable[[], Any], grace: float = 0.0) -> Any:
    """Run user code under its time limit and turn however it leaves into one of our outcomes."""
    if not watch.left:  # many short steps may each be done before an alarm can strike
        raise HandlerTimedOut
    try:
        return watch.timer.run_within(watch.left + grace, run)
    except _Exhausted:
        raise
    except (TimeLimitReached, CoroutineTimedOut):
        raise HandlerTimedOut from None
    except Exception as error:
        raise HandlerFailed(_described(error)) from error
    except BaseException as error:
        raise HandlerCrashed(_described(error)) from error


def _described(error: BaseException) -> ErrorInfo:
    """The error as user code sees it: what is above it (our own frames, asyncio's) left out of the traceback."""
    trace = frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        file = frame.tb_frame.f_code.co_filename
        if os.path.dirname(file) == _OWN_FOLDER and file != _HELPER:
            trace = frame.tb_next
        frame = frame.tb_next
    return describe_exception(error.with_traceback(trace))


def _awaited(awaitable: Awaitable[Any], watch: Stopwatch) -> Any:
    # Imported only where a handler needs it: asyncio takes a tenth of what a cold start takes beside boto3's own.
    from asya.runtime.coroutines import awaited

    return awaited(awaitable, watch)
