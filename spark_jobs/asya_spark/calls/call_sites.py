"""Names the line of the user's code that a Spark stage works for.

Spark names a stage after the outermost call into PySpark. In a call's own thread that is PySpark's wrapper of the thread, and for
data frames a method of Java.
"""

import os
import sys
import sysconfig
import threading
from types import FrameType

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
    stack: list[FrameType] = []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    line = ""
    for each in reversed(stack):
        file = each.f_code.co_filename
        if line and file.startswith(_SPARK):
            break  # what is below has been called by Spark
        if not file.startswith(("<", *_OTHERS)):
            line = f"{each.f_code.co_name} at {os.path.basename(file)}:{each.f_lineno}"
    return line
