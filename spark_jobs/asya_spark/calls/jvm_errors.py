"""Reads what the JVM says about an error of Spark: its cause, Spark's error class, and the error of a Python worker.

PySpark raises one of a few types for everything that fails in the JVM. Rules, and people, need to tell a broken file from a lost
executor, and an error of the user's own function from both (`protocol §10.jvm-errors`).
"""

import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PythonException

from asya_spark.calls.call_sites import user_line_of

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
