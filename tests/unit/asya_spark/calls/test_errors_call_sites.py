"""Which line of the user's code a stage works for."""

import json
import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark import InheritableThread

from asya_spark.calls.errors import lines_of_stages, user_line


@pytest.mark.rule("10.stages")
def test_the_innermost_line_of_the_user_is_named() -> None:
    found: list[str] = []

    class Noting:
        def __repr__(self) -> str:
            found.append(user_line(sys._getframe()))
            return ""

    def totals() -> None:
        json.dumps([], default=repr, cls=None)  # code of the standard library is not the user's
        repr(Noting())

    totals()
    assert found[0].startswith("__repr__ at test_errors_call_sites.py:")
    # Spark may call other code, such as a hook of the local cloud; the line before the call of Spark counts.
    hook = compile("def hook():\n    found.append(user_line(sys._getframe()))", "hook.py", "exec")
    spark = compile("def send():\n    hook()\nsend()", f"{os.path.dirname(pyspark.__file__)}/send.py", "exec")
    names = {"sys": sys, "user_line": user_line, "found": found}
    exec(hook, names)
    exec(spark, names)
    assert found[-1].startswith("test_the_innermost_line_of_the_user_is_named at test_errors_call_sites.py:")
    assert user_line(None) == ""


def context(active: list[int], groups: dict[str, list[int]]) -> Any:
    """A context with these jobs, each with a stage of ten times its number."""
    tracker = SimpleNamespace(
        getActiveJobsIds=lambda: active,
        getJobIdsForGroup=lambda group: groups.get(group, []),
        getJobInfo=lambda job: SimpleNamespace(stageIds=[10 * job]),
    )
    return SimpleNamespace(statusTracker=lambda: tracker)


@pytest.mark.rule("10.stages")
def test_each_call_names_the_stages_of_its_own_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_end = threading.Event(), threading.Event()

    def totals() -> None:
        started.set()
        may_end.wait()

    # The wrapper of PySpark asks for a context; the thread alone matters here.
    thread = InheritableThread.__new__(InheritableThread)
    threading.Thread.__init__(thread, target=totals, name="attempt-1/0", daemon=True)
    threading.Thread.start(thread)
    try:
        started.wait()
        lines = lines_of_stages(context([1, 2, 3], {"attempt-1/0": [0, 1, 2]}))
    finally:
        may_end.set()
        thread.join()
    assert lines.keys() == {10, 20}
    assert all(line.startswith("totals at test_errors_call_sites.py:") for line in lines.values())
    assert lines_of_stages(context([], {})) == {}
