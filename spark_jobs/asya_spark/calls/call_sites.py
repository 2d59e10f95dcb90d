"""Names the line of the user's code that a Spark stage works for, or that an error of Spark came through.

Spark names a stage after the outermost call into PySpark. In a call's own thread that is PySpark's wrapper of the thread, and for
data frames a method of Java.
"""

import os
import sys
import sysconfig
import threading
from collections.abc import Iterable
from traceback import walk_tb
from types import CodeType, FrameType, TracebackType

import pyspark
from py4j import java_gateway  # type: ignore[import-untyped]
from pyspark import InheritableThread, SparkContext

import asya_spark

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
