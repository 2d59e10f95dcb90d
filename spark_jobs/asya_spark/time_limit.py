"""User code under a time limit, without harm to what runs after it.

The code runs in a thread of its own. A signal would tear the main thread out of the middle of a conversation with the JVM,
and the next envelope would read the answers meant for this one. A thread that does not heed its interruption is left behind;
it is a daemon, and whatever it still does has no result.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pyspark import InheritableThread, SparkContext

Result = TypeVar("Result")

GRACE_SECONDS = 10.0


class TimeLimitReached(BaseException):
    """Raised inside user code when its time is up; a BaseException, so that `except Exception` lets it pass."""


@dataclass
class Ending(Generic[Result]):
    """How a piece of user code ended: with a value, with an error, or not in time."""

    value: Result | None = None
    error: BaseException | None = None
    timed_out: bool = False


def run_within(seconds: float, work: Callable[[], Result], spark_context: SparkContext, group: str) -> Ending[Result]:
    """Run `work` for at most so long; whatever it raises is part of the answer.

    Args:
        group: names the Spark jobs that it starts, so that they can be cancelled with it.
    """
    ending: Ending[Result] = Ending()
    environment = copy_context()

    def inside() -> None:
        spark_context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            ending.value = environment.run(work)
        except BaseException as error:  # noqa: BLE001 - handed over to the caller's thread
            ending.error = error

    thread = InheritableThread(target=inside, name=group, daemon=True)
    thread.start()
    thread.join(seconds)
    if not thread.is_alive():
        return ending
    _interrupt(thread, spark_context, group)
    return Ending(timed_out=True)  # whatever else the thread does has no result


def _interrupt(thread: threading.Thread, spark_context: SparkContext, group: str) -> None:
    """Cancel what Spark does for it, now and later, raise in its Python code, and give it a moment to tidy up."""
    jvm_context: Any = spark_context._jsc.sc()
    jvm_context.cancelJobGroupAndFutureJobs(group)
    identity: Any = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(TimeLimitReached))
    thread.join(GRACE_SECONDS)
