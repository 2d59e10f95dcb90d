"""Executors that come late or get lost: faults of a local driver, whose tasks run in its own process.

The driver loads this module by its path. A late executor is an idle job that holds all cores of the driver. A lost one takes
along its running tasks, its shuffle files and its cached blocks: Spark starts the tasks again, and computes the rest again.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTION = "no executor yet"
REASON = "ExecutorLostFailure: the executor was lost (a fault of the local cloud)"
_POLL_SECONDS = 0.05
_TASKS = 10_000
_EXECUTOR = "driver"
"""The id of the only executor of a local Spark."""


@contextlib.contextmanager
def faulty_executors(context_class: Any, delay: float, loss: float | None) -> Iterator[None]:
    """Let the executors of each Spark context come late or get lost.

    Args:
        context_class: `SparkContext`.
        delay: Seconds from the start of a context during which no task runs; 0 for none.
        loss: Seconds after which the tasks that run are lost once; None for never.
    """
    if not delay and loss is None:
        yield
        return
    original = context_class.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if delay:
            _hold_cores(self, delay)
        if loss is not None:
            threading.Thread(target=_lose_later, args=(self, loss), daemon=True).start()

    context_class.__init__ = init
    try:
        yield
    finally:
        context_class.__init__ = original


def _hold_cores(context: Any, seconds: float) -> None:
    """Hold all cores from now on; returns as soon as they are held."""
    cores = context.defaultParallelism
    numbers = context._jvm.java.util.ArrayList()
    for number in range(cores):
        numbers.add(number)
    sleepers = context._jsc.parallelize(numbers, cores).pipe(f"sleep {seconds}")

    def hold() -> None:
        context.setJobDescription(DESCRIPTION)
        with contextlib.suppress(Exception):  # the context may be stopped meanwhile
            sleepers.count()

    threading.Thread(target=hold, daemon=True).start()
    while sum(1 for _ in _running_tasks(context)) < cores:
        time.sleep(_POLL_SECONDS)


def _lose_later(context: Any, seconds: float) -> None:
    time.sleep(seconds)
    with contextlib.suppress(Exception):  # the context may be stopped meanwhile
        lose_executors(context)


def lose_executors(context: Any) -> None:
    """Lose all executors with the tasks that run; if none runs, wait for the next one.

    Args:
        context: A `SparkContext`.
    """
    while not (tasks := list(_running_tasks(context))):
        time.sleep(_POLL_SECONDS)
    environment = context._jsc.sc().env()
    # The block manager stays registered: that of a driver cannot register again.
    environment.mapOutputTracker().removeOutputsOnExecutor(_EXECUTOR)
    for rdd in list(context._jsc.getPersistentRDDs()):
        environment.blockManager().master().removeRdd(rdd, True)
    for task in tasks:
        context._jsc.sc().killTaskAttempt(task, True, REASON)


def _running_tasks(context: Any) -> Iterator[int]:
    """Yield the ids of the running tasks."""
    store = context._jsc.sc().statusStore()
    stages = store.activeStages()
    for stage in (stages.apply(index) for index in range(stages.size())):
        tasks = store.taskList(stage.stageId(), stage.attemptId(), _TASKS)
        found = (tasks.apply(index) for index in range(tasks.size()))
        yield from (task.taskId() for task in found if task.status() == "RUNNING")
