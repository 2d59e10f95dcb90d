"""What an attempt leaves on the way and at its end: journal, heartbeat, commit (`asya.protocol.job_runs`)."""

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark import SparkContext

from asya_spark.errors import JobError
from asya_spark.files import Files

HEARTBEAT_SECONDS = 5.0
SLOTS = 2


@dataclass(frozen=True)
class Part:
    """One file of results, of the members `first` to `last`."""

    file: str
    first: int
    last: int
    lines: int
    size: int


class Journal:
    """Says which member is at work before it is, and which parts are done.

    Two slots are written in turn: a process that dies while it writes one leaves the other readable.
    """

    def __init__(self, files: Files, folder: str, run_id: str, attempt: str) -> None:
        self._files = files
        self.folder = folder
        self._run_id = run_id
        self.attempt = attempt
        self._sequence = 0
        self.parts: list[Part] = []
        self.at_work: int | None = None

    def note(self, at_work: int | None) -> None:
        """Write down who is at work now; returns when it is written."""
        self.at_work = at_work
        self._sequence += 1
        self._write(
            f"journal-{self._sequence % SLOTS}.json",
            {"sequence": self._sequence, "updated_at": now_text(), "at_work": at_work},
        )

    def commit(self, error: JobError | None) -> None:
        """Write the commit: the last file of an attempt, after which nothing may follow."""
        told = None if error is None else asdict(error)
        self._write("commit.json", {"finished_at": now_text(), "error": told})

    def _write(self, name: str, content: dict[str, Any]) -> None:
        whole = {
            "run_id": self._run_id,
            "attempt": self.attempt,
            **content,
            "parts": [asdict(part) for part in self.parts],
        }
        self._files.write(f"{self.folder}{name}", json.dumps(whole, separators=(",", ":")).encode("ascii"))


class Heartbeat:
    """Writes now and then, from a thread of its own, how far the run is: for progress, and to tell slow from dead."""

    def __init__(self, files: Files, folder: str, describe: Callable[[], dict[str, Any]]) -> None:
        self._files = files
        self._folder = folder
        self._describe = describe
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        count = 0
        while not self._done.wait(HEARTBEAT_SECONDS):
            count += 1
            content = json.dumps({"at": now_text(), "beat": count, **self._describe()}).encode("ascii")
            try:
                self._files.write(f"{self._folder}heartbeat-{count % SLOTS}.json", content)
            except Exception as error:  # noqa: BLE001 - the run itself does not depend on it; the next beat tries again
                print(f"asya_spark: heartbeat {count} not written: {type(error).__name__}: {error}", flush=True)


def spark_progress(spark_context: SparkContext) -> dict[str, Any]:
    """The active stages and how many of their tasks are done."""
    tracker = spark_context.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
    return {
        "stages": [
            {"stage": info.stageId, "name": info.name[:200], "tasks": info.numTasks, "done": info.numCompletedTasks}
            for info in stages
        ]
    }


def now_text() -> str:
    """Now, as the mesh writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
