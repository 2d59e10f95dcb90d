"""What a heartbeat tells about Spark (`protocol §10`)."""

from types import SimpleNamespace
from typing import Any

import pytest

from asya_spark.heartbeat import StageChanges, spark_progress


class Executors:
    """A Scala sequence of the driver and its executors."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def size(self) -> int:
        return len(self._ids)

    def apply(self, index: int) -> Any:
        return SimpleNamespace(id=lambda: self._ids[index])


def spark_context(master: str, *executors: str) -> Any:
    """A context whose status store knows these executors, lost ones included."""

    def executor_list(active_only: bool) -> Executors:
        assert not active_only
        return Executors("driver", *executors)

    store = SimpleNamespace(activeStages=Executors, executorList=executor_list)
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: store))
    return SimpleNamespace(master=master, _jsc=java)


@pytest.mark.rule("15.RunDelay")
@pytest.mark.parametrize(("executors", "count"), [((), 0), (("1",), 1), (("1", "2"), 2)])
def test_15_a_heartbeat_counts_the_executors_of_its_run(executors: tuple[str, ...], count: int) -> None:
    assert spark_progress(spark_context("yarn", *executors)) == {"stages": [], "executors": count}


def test_a_local_driver_needs_no_executor() -> None:
    assert spark_progress(spark_context("local[2]")) == {"stages": [], "executors": None}


@pytest.mark.rule("10.stages")
def test_a_stage_tells_when_one_of_its_tasks_ended_last() -> None:
    changes = StageChanges()
    assert [changes.since(3, done, at) for done, at in ((0, "t1"), (0, "t2"), (1, "t3"), (1, "t4"))] == [
        "t1",
        "t1",
        "t3",
        "t3",
    ]
    assert changes.since(4, 1, "t5") == "t5"
