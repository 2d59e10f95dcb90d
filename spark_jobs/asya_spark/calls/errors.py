"""Describes the errors of jobs in the format of `protocol §6`, as for light handlers.

Reads what the JVM says of an error, and names the line of the user's code that Spark works for.
"""

import builtins
import os
import re
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from traceback import walk_tb
from types import CodeType, FrameType, TracebackType
from typing import Any

import pyspark
from py4j import java_gateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PythonException

import asya_spark
from asya.contracts import errors as contract_errors
from asya.contracts.errors import ContractError

_SPARK = tuple(f"{os.path.dirname(module.__file__)}{os.sep}" for module in (pyspark, java_gateway) if module.__file__)
_OTHERS = (
    *_SPARK,
    f"{os.path.dirname(asya_spark.__file__)}{os.sep}",
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)
"""The folders of code that is not the user's."""

_Place = tuple[CodeType, int]


def lines_of_stages(context: SparkContext) -> dict[int, str]:
    """Return the line at which the call of each active stage waits, by the id of the stage.

    Stages of threads that the user has started without a job group have none.
    """
    tracker = context.statusTracker()
    active = set(tracker.getActiveJobsIds())
    if not active:
        return {}
    frames = sys._current_frames()  # the only way to the stack of another thread
    lines: dict[int, str] = {}
    for thread in threading.enumerate():
        if not isinstance(thread, InheritableThread):
            continue
        line = user_line(frames.get(thread.ident or 0))
        for job in active.intersection(tracker.getJobIdsForGroup(thread.name)) if line else ():
            info = tracker.getJobInfo(job)
            lines |= dict.fromkeys(info.stageIds, line) if info is not None else {}
    return lines


def user_line(frame: FrameType | None) -> str:
    """Return the line of the user's code of a stack that has called Spark, such as `totals at shop_jobs.py:15`.

    Without a call of Spark it is the innermost line of the user; without such a line it is empty.
    """
    stack: list[_Place] = []
    while frame is not None:
        stack.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return _line_of(reversed(stack))


def user_line_of(trace: TracebackType | None) -> str:
    """Return the line of the user's code that an error of Spark came through, as `user_line` does."""
    return _line_of((frame.f_code, number) for frame, number in walk_tb(trace))


def _line_of(stack: Iterable[_Place]) -> str:
    """Return the line of the user of a stack, outermost call first."""
    line = ""
    for code, number in stack:
        if line and code.co_filename.startswith(_SPARK):
            break  # what is below has been called by Spark
        if not code.co_filename.startswith(("<", *_OTHERS)):
            line = f"{code.co_name} at {os.path.basename(code.co_filename)}:{number}"
    return line


_CAUSES = 10
_PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"
_TRACEBACK = "Traceback (most recent call last):\n"
_CONDITION = re.compile(r"\s*\[([A-Z][A-Z0-9_]*)(\.[A-Z0-9_.]+)?\] ")
_SQL_STATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5};?")
_LOST_TASK = re.compile(r"most recent failure: Lost task [^\n]*?\): ([\w.$]+): (.*)", re.DOTALL)
_FILE = re.compile(r"\bfile ([a-z][a-z0-9]*:/\S+)")
_JAVA_STACK = "\n\tat "


@dataclass(frozen=True)
class JvmError:
    """An error of the JVM.

    Attributes:
        type: the error class of its deepest cause that has one, such as `FAILED_READ_FILE.NO_HINT`; else the class of the cause.
        message: what this cause says. Its first line has the Java exception below it and the line of the user's code.
        names: Spark's error classes, such as `FAILED_READ_FILE.NO_HINT` and `FAILED_READ_FILE`, then the classes of the
            exception and its causes.
        worker: the error of a Python worker that caused it.
    """

    type: str
    message: str
    names: tuple[str, ...]
    worker: "WorkerError | None"


@dataclass(frozen=True)
class WorkerError:
    """The error that user code raised in a Python worker.

    Attributes:
        name: the qualified name of its type.
        loaded: the type, if the driver has loaded it too.
    """

    name: str
    message: str
    loaded: type | None


def jvm_error(error: BaseException) -> JvmError | None:
    """What the JVM says about an error; None for an error of Python alone."""
    causes = list(_causes(error))
    if not causes and not isinstance(error, PythonException):
        return None
    conditions = [name for _, message in causes for name in _conditions(message)]
    texts = [message for name, message in causes if name == _PYTHON_EXCEPTION]
    worker = worker_error(texts[-1] if texts else str(error)) if texts or isinstance(error, PythonException) else None
    causes = causes or [(_PYTHON_EXCEPTION, str(error))]
    kind, message = cause_of(causes, user_line_of(error.__traceback__))
    classes = [name for name, _ in causes]
    return JvmError(kind, message, tuple(dict.fromkeys([*conditions, *classes])), worker)


def cause_of(causes: Sequence[tuple[str, str]], line: str) -> tuple[str, str]:
    """The type and the message of an error with these causes.

    Args:
        causes: class and message of each Java exception, outermost first; at least one.
        line: the line of the user's code, such as `totals at shop_jobs.py:15`.
    """
    with_class = [index for index, (_, message) in enumerate(causes) if _CONDITION.match(message)]
    index = with_class[-1] if with_class else len(causes) - 1
    name, message = causes[index]
    kind = next(_conditions(message), name)
    # An exception without a message is described by the one that it caused.
    text = _text(message) or next((text for _, outer in reversed(causes[:index]) if (text := _text(outer))), "")
    first, _, rest = text.partition("\n")
    details = [_exception(*causes[-1])] if index < len(causes) - 1 else []
    details += [line] if line else []
    files = [found[1].rstrip(".") for _, outer in causes[:index] if (found := _FILE.search(outer))]
    first = " ".join(filter(None, (first, f"({'; '.join(details)})" if details else "")))
    where = [f"while reading {file}" for file in dict.fromkeys(files) if file not in text]
    return kind, "\n".join(filter(None, (first, *where, rest)))


def _exception(name: str, message: str) -> str:
    first = _text(message).partition("\n")[0]
    return f"{name}: {first}" if first else name


def _text(message: str) -> str:
    """A message without Spark's error class, which is the type, and without the SQL state and the stack of the JVM."""
    return _SQL_STATE.sub("", _CONDITION.sub("", message.partition(_JAVA_STACK)[0], count=1), count=1).strip()


def worker_error(text: str) -> WorkerError | None:
    """The error at the end of a Python traceback; None if the text has none."""
    lines = text.rpartition(_TRACEBACK)[2].splitlines() if _TRACEBACK in text else []
    while lines and lines[0].startswith(" "):
        del lines[0]
    if not lines:
        return None
    name, _, message = "\n".join(lines).strip().partition(": ")
    return WorkerError(name, message, _loaded_type(name)) if re.fullmatch(r"[\w.<>]+", name) else None


def _causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """Class and message of the Java exception of an error, and of its causes."""
    exception: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: tuple[str, str] | None = None
    for _ in range(_CAUSES):
        if exception is None:
            break
        try:
            found = (str(exception.getClass().getName()), str(exception.getMessage() or ""))
            exception = exception.getCause()
        except Py4JError:  # the JVM ended, and with it what it would say
            break
        yield found
    # The exception of a task that cannot be serialized is only in the text of the job that it ended.
    if found is not None and (lost := _LOST_TASK.search(found[1])):
        yield lost[1], lost[2]


def _conditions(message: str) -> Iterator[str]:
    if found := _CONDITION.match(message):
        yield from (f"{found[1]}{found[2]}", found[1]) if found[2] else (found[1],)


def _loaded_type(name: str) -> type | None:
    module, _, attribute = name.rpartition(".")
    kind = getattr(sys.modules.get(module) if module else builtins, attribute, None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


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
