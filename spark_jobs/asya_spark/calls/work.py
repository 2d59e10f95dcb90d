"""Reads what Spark has measured of a call: the shuffle, the spill and the skew of its stages (`protocol §10.work`)."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

MOST_STAGES = 50
"""The stages of a call that are read, the last ones; each costs some milliseconds."""
_MOST_TASKS = 10_000  # Spark sorts the tasks of a stage for each of its metrics
_SKEW = 10.0
LONG_MILLISECONDS = 1000.0
_NAME_LIMIT = 80
# Spark counts a task a moment after it has ended.
_COUNTED_MILLISECONDS = 200
_SUMS = {
    "shuffle_read": "shuffleReadBytes",
    "shuffle_written": "shuffleWriteBytes",
    "spilled_memory": "memoryBytesSpilled",
    "spilled_disk": "diskBytesSpilled",
}


def work_of(spark: SparkSession, group: str) -> dict[str, Any] | None:
    """The work of a call; None if it ran no stage, and if Spark does not tell.

    Args:
        group: the job group of the call.
    """
    try:
        context: Any = spark.sparkContext._jsc.sc()
        _wait_until_counted(context)
        return summed(_stages(spark, context, group))
    except Exception as error:  # noqa: BLE001 - no result depends on these numbers
        print(f"asya_spark: stages of a call not read: {type(error).__name__}: {error}", flush=True)
        return None


def summed(stages: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The work of these stages together: their sums, and the longest task among those that are skewed."""
    work: dict[str, Any] = {}
    for stage in stages:
        work["stages"] = work.get("stages", 0) + 1
        for name in ("tasks", *_SUMS):
            work[name] = work.get(name, 0) + stage[name]
        longest = work["skew"]["longest_ms"] if "skew" in work else 0.0
        if is_skewed(stage["median_ms"], stage["longest_ms"]) and stage["longest_ms"] > longest:
            work["skew"] = {name: stage[name] for name in ("stage", "name", "tasks", "median_ms", "longest_ms")}
    return work or None


def is_skewed(median_ms: float, longest_ms: float) -> bool:
    """Whether the longest task of a stage took ten times the median, and long enough to matter."""
    return longest_ms >= LONG_MILLISECONDS and longest_ms >= _SKEW * median_ms


def _wait_until_counted(context: Any) -> None:
    with suppress(Py4JError):  # other calls keep Spark busy; then the last task may be missing
        context.listenerBus().waitUntilEmpty(_COUNTED_MILLISECONDS)


def _stages(spark: SparkSession, context: Any, group: str) -> Iterator[dict[str, Any]]:
    store, tracker = context.statusStore(), spark.sparkContext.statusTracker()
    ids: set[int] = set()
    for job in sorted(tracker.getJobIdsForGroup(group), reverse=True):
        info = tracker.getJobInfo(job)
        ids.update(info.stageIds if info is not None else ())
        if len(ids) >= MOST_STAGES:
            break
    for stage_id in sorted(ids)[-MOST_STAGES:]:
        try:
            stage = store.lastStageAttempt(stage_id)
        except Py4JError:
            continue  # Spark has forgotten it, or skipped it: another stage left what it would give
        if stage.numCompleteTasks():
            yield _stage(spark, store, stage)


def _stage(spark: SparkSession, store: Any, stage: Any) -> dict[str, Any]:
    tasks = stage.numCompleteTasks()
    # A stage without a long task cannot be skewed.
    is_long = stage.executorRunTime() >= LONG_MILLISECONDS and 1 < tasks <= _MOST_TASKS
    median, longest = _durations(spark, store, stage) if is_long else (0.0, 0.0)
    return {
        "stage": stage.stageId(),
        "name": stage.name()[:_NAME_LIMIT],
        "tasks": tasks,
        **{name: getattr(stage, method)() for name, method in _SUMS.items()},
        "median_ms": median,
        "longest_ms": longest,
    }


def _durations(spark: SparkSession, store: Any, stage: Any) -> tuple[float, float]:
    """The milliseconds of the median task and of the longest one."""
    gateway: Any = spark.sparkContext._gateway
    quantiles = gateway.new_array(gateway.jvm.double, 2)
    quantiles[0], quantiles[1] = 0.5, 1.0
    summary = store.taskSummary(stage.stageId(), stage.attemptId(), quantiles)
    if not summary.isDefined():
        return 0.0, 0.0
    durations = summary.get().executorRunTime()
    return float(durations.apply(0)), float(durations.apply(1))
