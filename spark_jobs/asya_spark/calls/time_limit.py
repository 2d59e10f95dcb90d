"""Runs user code under a time limit, without effects on the next envelope.

The code runs in its own thread. A signal would interrupt the main thread within a call to the JVM, and the next envelope
would read the responses of this one. A thread that ignores its interruption is abandoned: it is a daemon without a result.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

Value = TypeVar("Value")

GRACE_SECONDS = 10.0
# A thread has given its ending a moment before it exits.
_EXIT_SECONDS = 1.0
_POOL = "spark.scheduler.pool"


class TimeLimitReached(BaseException):
    """Raised in user code at its time limit; a BaseException, so `except Exception` does not catch it."""


@dataclass
class Ending(Generic[Value]):
    """The ending of user code: a value, an error or a timeout."""

    value: Value | None = None
    error: BaseException | None = None
    timed_out: bool = False


@dataclass
class _Call(Generic[Value]):
    """A call at work.

    Attributes:
        ends: on the monotonic clock, when it is interrupted, and after that when it is abandoned.
        ending: what it ended with, once its thread has.
    """

    index: int
    group: str
    session: SparkSession
    thread: threading.Thread
    pool: int
    ends: float
    is_interrupted: bool = False
    ending: Ending[Value] = field(default_factory=Ending)


def is_at_work(attempt: str) -> bool:
    """Whether calls of an attempt are still at work after its end: those that ignored their interruption."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(attempt)]
    for thread in threads:
        thread.join(_EXIT_SECONDS)
    return any(thread.is_alive() for thread in threads)


class Calls(Generic[Value]):
    """Calls at work at the same time, each in a thread and a pool of Spark's scheduler of its own, within its own limit.

    One thread alone starts calls and waits for them.
    """

    def __init__(self) -> None:
        self._at_work: dict[int, _Call[Value]] = {}
        self._ended: SimpleQueue[_Call[Value]] = SimpleQueue()

    def start(self, index: int, seconds: float, work: Callable[[], Value], session: SparkSession, group: str) -> None:
        """Starts `work`, for at most `seconds`.

        Args:
            index: identifies the call among those at work.
            session: the session of the call, whose operations are canceled with it.
            group: names the Spark jobs of `work`, so that they are canceled with it.
        """
        environment, context = copy_context(), session.sparkContext
        # The scheduler keeps each pool for ever, so the pools are few and used again.
        pool = next(number for number in range(len(self._at_work) + 1) if number not in self._pools())
        ending: Ending[Value] = Ending()

        def inside() -> None:
            try:
                context.setJobGroup(group, group, interruptOnCancel=True)
                context.setLocalProperty(_POOL, f"asya-{pool}")
                ending.value = environment.run(work)
            except BaseException as error:  # noqa: BLE001 - returned to the caller's thread
                ending.error = error
            self._ended.put(call)

        thread = InheritableThread(target=inside, name=group, daemon=True)
        call = _Call(index, group, session, thread, pool, time.monotonic() + seconds, ending=ending)
        self._at_work[index] = call
        thread.start()

    def wait(self) -> tuple[int, Ending[Value]]:
        """Waits for the next call that ends, by itself or by its limit; returns its index and its ending."""
        while True:
            first = min(self._at_work.values(), key=lambda call: call.ends)
            try:
                call = self._ended.get(timeout=max(0.0, first.ends - time.monotonic()))
            except Empty:
                if not first.is_interrupted:
                    _interrupt(first)
                    first.ends = time.monotonic() + GRACE_SECONDS
                    continue
                call = first
            if self._at_work.get(call.index) is call:  # else it had been abandoned
                del self._at_work[call.index]
                # A new object, because an abandoned thread may still change its ending.
                return call.index, Ending(timed_out=True) if call.is_interrupted else call.ending

    def _pools(self) -> set[int]:
        return {call.pool for call in self._at_work.values()}


def run_within(seconds: float, work: Callable[[], Value], session: SparkSession, group: str) -> Ending[Value]:
    """Runs `work` for at most `seconds`; returns its error instead of raising it.

    Args:
        session: the session of the call, whose operations are canceled with it.
        group: names the Spark jobs of `work`, so that they are canceled with it.
    """
    calls: Calls[Value] = Calls()
    calls.start(0, seconds, work, session, group)
    return calls.wait()[1]


def _interrupt(call: _Call[Any]) -> None:
    """Cancels the call's Spark jobs, also those of the threads that it started, and raises in its Python code."""
    call.is_interrupted = True
    jvm_context: Any = call.session.sparkContext._jsc.sc()
    jvm_context.cancelJobGroupAndFutureJobs(call.group)
    call.session.interruptAll()
    identity: Any = ctypes.c_ulong(call.thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(TimeLimitReached))
