"""Runs user code under a time limit, without effects on the next envelope.

The code runs in its own thread. A signal would interrupt the main thread within a call to the JVM, and the next envelope
would read the responses of this one. A thread that ignores its interruption is abandoned: it is a daemon without a result.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pyspark import InheritableThread, SparkContext

Value = TypeVar("Value")

GRACE_SECONDS = 10.0


class TimeLimitReached(BaseException):
    """Raised in user code at its time limit; a BaseException, so `except Exception` does not catch it."""


@dataclass
class Ending(Generic[Value]):
    """The ending of user code: a value, an error or a timeout."""

    value: Value | None = None
    error: BaseException | None = None
    timed_out: bool = False


def run_within(seconds: float, work: Callable[[], Value], spark_context: SparkContext, group: str) -> Ending[Value]:
    """Runs `work` for at most `seconds`; returns its error instead of raising it.

    Args:
        group: names the Spark jobs of `work`, so that they are canceled with it.
    """
    ending: Ending[Value] = Ending()
    environment = copy_context()

    def inside() -> None:
        spark_context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            ending.value = environment.run(work)
        except BaseException as error:  # noqa: BLE001 - returned to the caller's thread
            ending.error = error

    thread = InheritableThread(target=inside, name=group, daemon=True)
    thread.start()
    thread.join(seconds)
    if not thread.is_alive():
        return ending
    _interrupt(thread, spark_context, group)
    return Ending(timed_out=True)  # a new object, because the thread may still change `ending`


def _interrupt(thread: threading.Thread, spark_context: SparkContext, group: str) -> None:
    """Cancels the thread's Spark jobs, raises in its Python code, and waits for its clean-up."""
    jvm_context: Any = spark_context._jsc.sc()
    jvm_context.cancelJobGroupAndFutureJobs(group)
    identity: Any = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(TimeLimitReached))
    thread.join(GRACE_SECONDS)
