"""What went wrong, as an envelope and a record carry it (`protocol §2`, `§6`)."""

import traceback

import msgspec

TRACEBACK_LIMIT = 16 * 1024
# A message may be a whole document; it has to fit beside the payload, into records and into logs.
MESSAGE_LIMIT = 16 * 1024


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error: its type (module-qualified except builtins), message, ancestors and traceback."""

    type: str
    message: str
    mro: tuple[str, ...] = ()
    traceback: str = ""


def describe_exception(error: BaseException, *, with_traceback: bool = True) -> ErrorInfo:
    """Describe an exception raised by user code.

    `mro` lists the ancestors without the class itself, `BaseException` and `object`; message and traceback are cut at
    16 KiB, of the traceback the end is kept, because the end says where it happened (`protocol §4`, `§6`).
    """
    kind = type(error)
    ancestors = tuple(qualified_name(base) for base in kind.__mro__[1:] if base not in (BaseException, object))
    text = "".join(traceback.format_exception(error)) if with_traceback else ""
    return ErrorInfo(type=qualified_name(kind), message=_message(error), mro=ancestors, traceback=cut(text))


def qualified_name(kind: type) -> str:
    """`ValueError`, `json.decoder.JSONDecodeError`."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def cut(text: str) -> str:
    """The last 16 KiB of a text, as bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= TRACEBACK_LIMIT:
        return data.decode("utf-8")
    return "…" + data[-(TRACEBACK_LIMIT - 4) :].decode("utf-8", "ignore")


def _message(error: BaseException) -> str:
    try:
        data = str(error).encode("utf-8", "replace")
    except Exception as unprintable:  # noqa: BLE001 - a user's __str__ may raise anything; the error must still travel
        return f"<{type(error).__name__}; its text could not be read: {type(unprintable).__name__}>"
    if len(data) <= MESSAGE_LIMIT:
        return data.decode("utf-8")
    return data[: MESSAGE_LIMIT - 4].decode("utf-8", "ignore") + "…"
