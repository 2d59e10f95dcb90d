"""Reads what the JVM says about an error of Spark: its causes, Spark's error class, and the error of a Python worker.

PySpark raises one of a few types for everything that fails in the JVM. Rules need to tell a broken file from a lost executor,
and an error of the user's own function from both (`protocol §10.jvm-errors`).
"""

import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PythonException

_CAUSES = 10
_PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"
_TRACEBACK = "Traceback (most recent call last):\n"
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*)(\.[A-Z0-9_.]+)?\] ")


@dataclass(frozen=True)
class JvmError:
    """An error of the JVM.

    Attributes:
        names: Spark's error classes, such as `FAILED_READ_FILE.NO_HINT` and `FAILED_READ_FILE`, then the classes of the
            exception and its causes.
        worker: the error of a Python worker that caused it.
    """

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
    classes = [name for name, _ in causes] or [_PYTHON_EXCEPTION]
    return JvmError(tuple(dict.fromkeys([*conditions, *classes])), worker)


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
    for _ in range(_CAUSES):
        if exception is None:
            return
        try:
            found = (str(exception.getClass().getName()), str(exception.getMessage() or ""))
            exception = exception.getCause()
        except Py4JError:  # the JVM ended, and with it what it would say
            return
        yield found


def _conditions(message: str) -> Iterator[str]:
    if found := _CONDITION.match(message):
        yield from (found[0].strip("[] "), found[1]) if found[2] else (found[1],)


def _loaded_type(name: str) -> type | None:
    module, _, attribute = name.rpartition(".")
    kind = getattr(sys.modules.get(module) if module else builtins, attribute, None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None
