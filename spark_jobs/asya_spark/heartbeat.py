"""Writes the heartbeats and partials of a running job."""

import json
import threading
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext

from asya_spark.calls.errors import lines_of_stages
from asya_spark.clock import now_text, text_of
from asya_spark.files import Files
from asya_spark.journal import COPIES, Partials

TICK_SECONDS = 1.0
TICKS_PER_HEARTBEAT = 3


class Heartbeat:
    """Writes a heartbeat every 3 s and partials every second, in its own thread."""

    def __init__(self, files: Files, folder: str, partials: Partials, describe: Callable[[], dict[str, Any]]) -> None:
        self._files = files
        self._folder = folder
        self._partials = partials
        self._describe = describe
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._try(self._partials.write)

    def _tick(self) -> None:
        count = 0
        while not self._done.wait(TICK_SECONDS):
            self._try(self._partials.write)
            if count % TICKS_PER_HEARTBEAT == 0:
                self._try(self._write_heartbeat, count // TICKS_PER_HEARTBEAT + 1)
            count += 1

    def _write_heartbeat(self, number: int) -> None:
        described = self._describe()  # before its time, so that no stage has begun after it
        content = json.dumps({"at": now_text(), "beat": number, **described}).encode("ascii")
        self._files.write(f"{self._folder}heartbeat-{number % COPIES}.json", content)

    def _try(self, step: Callable[..., None], *arguments: int) -> None:
        try:
            step(*arguments)
        except Exception as error:  # noqa: BLE001 - the run does not depend on heartbeats; the next tick retries
            print(f"asya_spark: heartbeat not written: {type(error).__name__}: {error}", flush=True)


class StageChanges:
    """When a task of each stage ended last, as seen from one heartbeat to the next: Spark's status does not tell."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, str]] = {}

    def since(self, stage: int, done: int, at: str) -> str:
        """Note the tasks done of a stage; return the time at which their number changed, or of the first look."""
        before = self._seen.get(stage)
        if before is None or before[0] != done:
            self._seen[stage] = before = (done, at)
        return before[1]


def spark_progress(spark_context: SparkContext, changes: StageChanges | None = None) -> dict[str, Any]:
    """The active stages with their tasks done and their rows read and written, and the number of executors so far.

    Lost and released executors count. A local driver is its own executor, so it has no number.

    Args:
        spark_context: the context.
        changes: what was seen before; None to tell no times of progress.
    """
    store: Any = spark_context._jsc.sc().statusStore()
    stages = store.activeStages()
    is_local = (spark_context.master or "").startswith("local")
    executors = None if is_local else _executors(store.executorList(False))
    active = [_stage(stages.apply(index)) for index in range(stages.size())]
    lines = lines_of_stages(spark_context) if active else {}
    for stage in active:
        stage["name"] = lines.get(stage["stage"], stage["name"])
        if changes is not None:
            stage["progress_at"] = changes.since(stage["stage"], stage["done"], now_text())
    return {"stages": active, "executors": executors}


def _executors(summaries: Any) -> int:
    return sum(summaries.apply(index).id() != "driver" for index in range(summaries.size()))


def _stage(stage: Any) -> dict[str, Any]:
    submitted = stage.submissionTime()
    return {
        "stage": stage.stageId(),
        "name": stage.name()[:200],
        "tasks": stage.numTasks(),
        "done": stage.numCompleteTasks(),
        "rows_read": stage.inputRecords() + stage.shuffleReadRecords(),
        "rows_written": stage.outputRecords() + stage.shuffleWriteRecords(),
        **({"began_at": text_of(submitted.get().getTime())} if submitted.isDefined() else {}),
    }
