"""Describes the errors of jobs in the format of `protocol §6`, as for light handlers."""

import traceback
from dataclasses import dataclass
from types import TracebackType

from asya.contracts import errors as contract_errors
from asya.contracts.errors import ContractError
from asya_spark.calls.jvm_errors import jvm_error

TRACEBACK_LIMIT = 16 * 1024  # bytes of UTF-8


@dataclass(frozen=True)
class JobError:
    """An error: type (module-qualified except builtins), message, ancestors, traceback."""

    type: str
    message: str
    mro: tuple[str, ...] = ()
    traceback: str = ""


def describe(error: BaseException) -> JobError:
    """Describes an error of user code; the traceback starts in user code and keeps its last 16 KiB.

    An error of the JVM is that of its cause, with Spark's error class as its type. An error of a Python worker is that of the
    user's own function. PySpark's types are among the ancestors of both (`protocol §10.jvm-errors`).
    """
    if isinstance(error, ContractError):
        return JobError(contract_errors.NAME, str(error), contract_errors.MRO)
    kind = type(error)
    text = _tail("".join(traceback.format_exception(kind, error, _user_traceback(error))))
    jvm = jvm_error(error)
    if jvm is None:
        return JobError(qualified_name(kind), _message(error), _ancestors(kind), text)
    own = _ancestors(jvm.worker.loaded) if jvm.worker is not None and jvm.worker.loaded else ()
    if jvm.worker is not None:
        name, message = jvm.worker.name, _tail(jvm.worker.message)
    else:
        name, message = jvm.type, _head(jvm.message)
    names = dict.fromkeys((*own, qualified_name(kind), *_ancestors(kind), *jvm.names))
    names.pop(name, None)
    return JobError(name, message, tuple(names), text)


def _ancestors(kind: type) -> tuple[str, ...]:
    return tuple(qualified_name(base) for base in kind.__mro__[1:] if base not in (BaseException, object))


def qualified_name(kind: type) -> str:
    """The qualified name, such as `ValueError` or `json.decoder.JSONDecodeError`."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _user_traceback(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if not trace.tb_frame.f_globals.get("__name__", "").startswith("asya_spark."):
            break
        trace = trace.tb_next
    return trace


def _message(error: BaseException) -> str:
    try:
        text = str(error).encode("utf-8", "replace").decode("utf-8")
    except Exception as unprintable:  # noqa: BLE001 - a user's __str__ may raise anything; the error must still travel
        return f"<{type(error).__name__}; str() raised {type(unprintable).__name__}>"
    # Py4J appends the JVM's stack to the message; the traceback has it too.
    return _tail(text.partition("\n\tat ")[0])


def _head(text: str) -> str:
    """The beginning of what Spark says: a cause comes first, and a plan that may be long comes last."""
    data = text.encode("utf-8", "replace")
    if len(data) <= TRACEBACK_LIMIT:
        return data.decode("utf-8")
    return data[: TRACEBACK_LIMIT - 4].decode("utf-8", "ignore") + "…"


def _tail(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= TRACEBACK_LIMIT:
        return data.decode("utf-8")
    return "…" + data[-(TRACEBACK_LIMIT - 4) :].decode("utf-8", "ignore")
