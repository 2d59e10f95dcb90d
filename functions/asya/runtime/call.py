"""Calls a handler of any kind and yields its frames (`protocol §6`)."""

import inspect
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw, field
from msgspec.structs import replace

from asya.contracts.errors import MRO as CONTRACT_ANCESTORS
from asya.contracts.errors import NAME as CONTRACT_ERROR
from asya.contracts.errors import ContractError
from asya.protocol.envelope import Frame
from asya.protocol.errors import ErrorInfo, describe_exception
from asya.protocol.numbers import Digits
from asya.protocol.strict_json import NotJsonError, decode_exact, decode_untyped
from asya.runtime.abi import EnvelopeView, execute
from asya.runtime.fan_out import FanOut, FanOutError, OutputGuard, with_digits
from asya.runtime.load import Handler
from asya.runtime.modes import GeneratorState, Mode, PayloadMode, Snapshot, slice_frames
from asya.runtime.time_limit import WALL_TIMER, CoroutineTimedOut, TimeBudget, TimeLimitReached, Timer

# Additional seconds before the alarm interrupts blocking code inside a coroutine.
BLOCKED_LOOP_GRACE = 0.5
# The time limit for the clean-up of an abandoned generator.
_CLOSING_SECONDS = 0.5

_OWN_FOLDER = os.path.dirname(__file__)
# Handlers call this module, so its frames stay in their tracebacks.
_FAN_OUT_FILE = inspect.getfile(FanOut)
_log = logging.getLogger(__name__)


class HandlerFailed(Exception):  # noqa: N818 - the outcome of user code, not an error of ours
    """The handler raised an exception, or returned or yielded a value that is not JSON."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.error = error


class HandlerCrashed(HandlerFailed):
    """The handler left by `SystemExit` or another `BaseException`."""


class HandlerTimedOut(Exception):  # noqa: N818 - as above
    """The time limit interrupted the handler."""


class ReadPayload(NamedTuple):
    """The value of a payload, and the digits of its numbers that the value itself does not have."""

    value: object
    digits: Digits | None = None


class Invoker(Protocol):
    """Calls one handler."""

    def read(self, payload: Raw) -> "ReadPayload":
        """See `HandlerInvoker.read`."""

    def frames(
        self, payload: Any, open_view: Callable[[], EnvelopeView], seconds: float, digits: Digits | None = None
    ) -> Generator[Frame, None, None]:
        """See `HandlerInvoker.frames`."""


class HandlerInvoker(msgspec.Struct, frozen=True):
    """Calls one handler under a time limit.

    Attributes:
        mode: converts the argument and the results (`handler_mode`).
        lists_fan_out: whether a returned list is one frame for each item, as in legacy meshes (`fan_out_lists`).
        read_response: gives the payload in a value from the handler (`responses`).
        timer: the clock and the alarm of the time limits.
        redact: keeps secrets out of the errors that are only logged.
    """

    handler: Handler
    mode: Mode = field(default_factory=PayloadMode)
    lists_fan_out: bool = False
    read_response: Callable[[Any], Any] = lambda value: value
    timer: Timer = WALL_TIMER
    redact: Callable[[str], str] = str

    def read(self, payload: Raw) -> ReadPayload:
        """Read a payload as the types of the handler need it: with all digits for decimals, else with plain floats.

        Raises:
            ValueError: the payload has a number out of range, or is nested too deeply.
        """
        return ReadPayload(decode_exact(payload)) if self.mode.has_decimals else ReadPayload(*decode_untyped(payload))

    def frames(
        self, payload: Any, open_view: Callable[[], EnvelopeView], seconds: float, digits: Digits | None = None
    ) -> Generator[Frame, None, None]:
        """Run the handler and yield each frame at once. Closing this generator runs the clean-up of the handler.

        Args:
            payload: the value of the payload; the handler may mutate it.
            open_view: makes a view of the received envelope; only generators, fan-outs and envelope mode need one.
            seconds: the time limit of the whole call.
            digits: those of the numbers of the payload, which numbers that the handler passes on get again.

        Raises:
            HandlerFailed, HandlerCrashed, HandlerTimedOut: the handler did not end normally.
        """
        budget = TimeBudget(seconds, self.timer)
        result = _guarded(budget, lambda: self.handler(self.mode.argument(payload, open_view)))
        if inspect.isawaitable(result):
            awaitable = result
            result = _guarded(budget, lambda: _run_awaitable(awaitable, budget), grace=BLOCKED_LOOP_GRACE)
        if inspect.isgenerator(result):
            yield from self._generator_frames(_SyncSource(result, budget), open_view, budget, digits)
            return
        if inspect.isasyncgen(result):
            yield from self._generator_frames(_AsyncSource(result, budget), open_view, budget, digits)
            return
        result = self.read_response(result)
        if digits is not None:
            result = with_digits(result, digits)
        if self.lists_fan_out and isinstance(result, list):
            frames = [self._frame(item, open_view) for item in result]
            yield from [replace(frame, alone=len(frames) == 1) for frame in frames]
        elif isinstance(result, FanOut):
            yield from self._slices(result, open_view)
        elif result is not None:
            yield replace(self._frame(result, open_view), alone=True)

    def _generator_frames(
        self,
        source: "_SyncSource | _AsyncSource",
        open_view: Callable[[], EnvelopeView],
        budget: TimeBudget,
        digits: Digits | None,
    ) -> Iterator[Frame]:
        """Run a generator: a yielded None gives nothing, a tuple is a command, any other value is a frame."""
        view = open_view()
        state = GeneratorState(Snapshot.of(view), view)
        guard = OutputGuard()
        answer: Any = None
        command_error: Exception | None = None
        try:
            while True:
                try:
                    value = _guarded(budget, lambda: source.resume(answer, command_error), grace=source.grace)  # noqa: B023
                except _Exhausted:
                    return
                answer, command_error = None, None
                if isinstance(value, tuple):
                    try:
                        answer = execute(view, value)
                    except Exception as error:  # noqa: BLE001 - the generator raises it at its yield
                        command_error = error.with_traceback(None)
                elif value is not None and (value := self.read_response(value)) is not None:
                    _check_output(guard, value)
                    if digits is not None:
                        value = with_digits(value, digits)
                    if isinstance(value, FanOut):
                        yield from self._slices(value, open_view, state)
                    else:
                        yield self._frame(value, open_view, state)
        finally:
            source.close(self.redact)

    def _frame(self, value: Any, open_view: Callable[[], EnvelopeView], state: GeneratorState | None = None) -> Frame:
        """The frame of a value from the handler, serialized at once."""
        try:
            return self.mode.frame(value, open_view, state)
        except NotJsonError as error:
            raise _processing_error(f"the handler gave a value that is not JSON: {error}") from None
        except Exception as error:  # reading a user-defined mapping or number may raise anything
            raise HandlerFailed(_described(error)) from error

    def _slices(
        self,
        output: FanOut,
        open_view: Callable[[], EnvelopeView],
        state: GeneratorState | None = None,
    ) -> Iterator[Frame]:
        """The frames of a fan-out: the received payload as the origin, then the items."""
        view = open_view()
        try:
            yield from slice_frames(output, state or GeneratorState(Snapshot.of(view), view))
        except NotJsonError as error:
            raise _processing_error(f"the handler fanned out a value that is not JSON: {error}") from None
        except FanOutError as error:
            raise _processing_error(str(error)) from None


def _check_output(guard: OutputGuard, value: object) -> None:
    try:
        guard.check(value)
    except FanOutError as error:
        raise _processing_error(str(error)) from None


def _processing_error(message: str) -> HandlerFailed:
    return HandlerFailed(ErrorInfo(type="processing_error", message=message))


class _Exhausted(Exception):  # noqa: N818
    """The generator has ended."""


class _SyncSource:
    grace = 0.0

    def __init__(self, generator: Generator[Any, Any, Any], budget: TimeBudget) -> None:
        self._generator = generator
        self._timer = budget.timer

    def resume(self, answer: Any, command_error: Exception | None) -> Any:
        try:
            return self._generator.throw(command_error) if command_error is not None else self._generator.send(answer)
        except StopIteration:
            raise _Exhausted from None

    def close(self, redact: Callable[[str], str]) -> None:
        _close_quietly(self._timer, self._generator.close, redact)


class _AsyncSource:
    @property
    def grace(self) -> float:
        return BLOCKED_LOOP_GRACE

    def __init__(self, generator: AsyncGenerator[Any, Any], budget: TimeBudget) -> None:
        self._generator = generator
        self._budget = budget

    def resume(self, answer: Any, command_error: Exception | None) -> Any:
        step = self._generator.athrow(command_error) if command_error is not None else self._generator.asend(answer)
        try:
            return _run_awaitable(step, self._budget)
        except StopAsyncIteration:
            raise _Exhausted from None

    def close(self, redact: Callable[[str], str]) -> None:
        budget = TimeBudget(_CLOSING_SECONDS, self._budget.timer)
        close = self._generator.aclose
        _close_quietly(budget.timer, lambda: _run_awaitable(close(), budget), redact, BLOCKED_LOOP_GRACE)


def _close_quietly(timer: Timer, close: Callable[[], Any], redact: Callable[[str], str], grace: float = 0.0) -> None:
    """Run the clean-up of an abandoned generator. The outcome of the hop is decided, so errors are only logged."""
    try:
        timer.run_within(_CLOSING_SECONDS + grace, close)
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        described = describe_exception(error)
        text = redact(f"{described.type}: {described.message}")
        _log.warning("the clean-up of an abandoned generator raised %s", text)


def _guarded(budget: TimeBudget, run: Callable[[], Any], grace: float = 0.0) -> Any:
    """Run user code under its time limit, and convert what it raises to one of the outcomes above."""
    if not budget.remaining:  # short steps may each end before the alarm
        raise HandlerTimedOut
    try:
        return budget.timer.run_within(budget.remaining + grace, run)
    except _Exhausted:
        raise
    except (TimeLimitReached, CoroutineTimedOut):
        raise HandlerTimedOut from None
    except Exception as error:
        raise HandlerFailed(_described(error)) from error
    except BaseException as error:
        raise HandlerCrashed(_described(error)) from error


def _described(error: BaseException) -> ErrorInfo:
    """The error with a traceback that starts in user code, without the frames of the runtime and of asyncio."""
    if isinstance(error, ContractError):
        return ErrorInfo(type=CONTRACT_ERROR, message=str(error), mro=CONTRACT_ANCESTORS)
    trace = frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        file = frame.tb_frame.f_code.co_filename
        if os.path.dirname(file) == _OWN_FOLDER and file != _FAN_OUT_FILE:
            trace = frame.tb_next
        frame = frame.tb_next
    return describe_exception(error.with_traceback(trace))


def _run_awaitable(awaitable: Awaitable[Any], budget: TimeBudget) -> Any:
    # Imported only for coroutines: apart from boto3, asyncio takes a tenth of a cold start.
    from asya.runtime.coroutines import run_awaitable

    return run_awaitable(awaitable, budget)
