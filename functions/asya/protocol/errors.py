"""The error that an envelope and a task carry (`protocol §2`, `§6`)."""

import traceback

import msgspec

TRACEBACK_LIMIT = 16 * 1024
# The message of an exception may be a whole document. It must fit beside the payload, into records and into logs.
MESSAGE_LIMIT = 16 * 1024
_TYPE_LIMIT = 1024
_MRO_LIMIT = 32


class TaskProblem(msgspec.Struct, frozen=True):
    """A failure of the infrastructure that keeps an envelope on its queue, such as a refused message (`protocol §13`)."""

    type: str
    message: str


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error: its type (module-qualified except for builtins), message, ancestors and traceback."""

    type: str
    message: str
    mro: tuple[str, ...] = ()
    traceback: str = ""


def shortened(error: ErrorInfo) -> ErrorInfo:
    """A copy within the size limits of reports and records; an envelope's own status may hold an error of any size."""
    return ErrorInfo(
        type=error.type[:_TYPE_LIMIT],
        message=error.message[:MESSAGE_LIMIT],
        mro=tuple(name[:_TYPE_LIMIT] for name in error.mro[:_MRO_LIMIT]),
        traceback=cut_traceback(error.traceback),
    )


def describe_exception(error: BaseException, *, with_traceback: bool = True) -> ErrorInfo:
    """Describe an exception raised by user code.

    `mro` lists the ancestors without the class itself, `BaseException` and `object`. Message and traceback are cut at
    16 KiB. A cut traceback keeps its end, because the end shows where the error was raised (`protocol §4`, `§6`).
    """
    kind = type(error)
    ancestors = tuple(qualified_name(base) for base in kind.__mro__[1:] if base not in (BaseException, object))
    text = "".join(traceback.format_exception(error)) if with_traceback else ""
    return ErrorInfo(type=qualified_name(kind), message=_message(error), mro=ancestors, traceback=cut_traceback(text))


def qualified_name(kind: type) -> str:
    """The name of a class with its module, such as `json.decoder.JSONDecodeError`; builtins have no module."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def cut_traceback(text: str) -> str:
    """The last 16 KiB of a traceback in UTF-8; a cut text starts with `…`."""
    data = text.encode("utf-8", "replace")
    if len(data) <= TRACEBACK_LIMIT:
        return data.decode("utf-8")
    return "…" + data[-(TRACEBACK_LIMIT - 4) :].decode("utf-8", "ignore")


def _message(error: BaseException) -> str:
    try:
        data = str(error).encode("utf-8", "replace")
    except Exception as unprintable:  # noqa: BLE001 - a user's __str__ may raise anything; the error is still reported
        return f"<{type(error).__name__}; its text could not be read: {type(unprintable).__name__}>"
    if len(data) <= MESSAGE_LIMIT:
        return data.decode("utf-8")
    return data[: MESSAGE_LIMIT - 4].decode("utf-8", "ignore") + "…"
