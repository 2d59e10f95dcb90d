"""What one call gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from asya.capabilities.legacy.options import Responses
from asya.protocol.errors import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Callable


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a handler.

    Attributes:
        handler: `module.function`.
        mode, responses: `handler_mode` and `responses`.
        timeout: seconds.
        next: the actors after this one in the route.
    """

    actor: str
    handler: str
    mode: str
    lists_fan_out: bool
    responses: Responses
    timeout: float
    payload: msgspec.Raw
    next: tuple[str, ...] = ()


class GivenFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame with what the handler changed for it.

    Attributes:
        payload: absent for the origin of a fan-out, which carries the received payload.
        next: the rest of the route as the handler left it; None if it did not change it.
        headers, status: what the handler set; null for what it deleted.
    """

    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    next: tuple[str, ...] | None = None
    headers: dict[str, msgspec.Raw] = {}
    status: dict[str, msgspec.Raw] = {}


class GivenCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a generator yielded, such as `("SET", ".route.next", […])`, with its answer or its error."""

    command: tuple[Any, ...]
    answer: Any = None
    error: str | None = None


class CallReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave.

    Attributes:
        commands: those of a light generator, in order.
        partials: the values of its FLY commands.
        error: why it failed; None if it did not.
        timed_out: whether the time limit ended it.
    """

    frames: tuple[GivenFrame, ...] = ()
    commands: tuple[GivenCommand, ...] = ()
    partials: tuple[Any, ...] = ()
    error: ErrorInfo | None = None
    timed_out: bool = False
    milliseconds: float = 0.0

    def with_paths(self, as_written: Callable[[str], str]) -> CallReport:
        """Return the report with other paths in its error: its author has the files, and not their copies."""
        if self.error is None:
            return self
        error = replace(
            self.error,
            message=as_written(self.error.message),
            traceback=as_written(self.error.traceback) if self.error.traceback else self.error.traceback,
        )
        return replace(self, error=error)
