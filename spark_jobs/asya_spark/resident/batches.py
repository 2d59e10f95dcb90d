"""Waits for the batches of a resident run (`protocol §10.resident`).

Each batch is a file that the dispatcher and this driver write only if it is absent. So both agree on what it is: the manifest
of further envelopes, or the mark that the run ends.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asya.protocol import text_lines
from asya_spark.clock import RunClock, now_text
from asya_spark.resident.files import ResidentFiles

POLL_SECONDS = 0.25
# The dispatcher gives a batch only to a run that was idle at most 5 s ago.
PRESENCE_SECONDS = 2.0


@dataclass(frozen=True)
class Linger:
    """How long a job run waits.

    Attributes:
        seconds: for the next batch.
        limit: minutes after which EMR Serverless ends the job run.
        region: the region of the mesh; None for that of the process.
    """

    seconds: float
    limit: float
    region: str | None = None


class Batches:
    """The batches of this job run, one after the other.

    Args:
        folder: URI of the folder of the run; ends with `/`.
        clock: the time that the job run has left.
        is_alive: whether the SparkContext can take a batch.
    """

    def __init__(
        self, files: ResidentFiles, folder: str, linger: Linger, clock: RunClock, is_alive: Callable[[], bool]
    ) -> None:
        self._files = files
        self._folder = folder
        self._linger = linger
        self._clock = clock
        self._is_alive = is_alive
        self._next = 1
        self._since = ""

    def announce(self) -> None:
        """Says that the next batch may come; call it just before the commit of the present one, which wakes the dispatcher."""
        self._since = now_text()
        self._write_presence()

    def wait(self, timeout: float) -> str | None:
        """Waits for the next batch.

        Args:
            timeout: seconds that an envelope may take; with less time left there is no next batch.

        Returns:
            The URI of its manifest; None if the run ends.
        """
        uri = f"{self._folder}batches/{self._next:06d}/manifest.json"
        ends_at = time.monotonic() + self._linger.seconds
        said_at = time.monotonic()
        while True:
            content = self._read_head(uri)
            if content is not None:
                self._next += 1
                return None if "closed" in content else uri
            reason = self._reason_to_end(ends_at, timeout)
            if reason is not None:
                mark = json.dumps({"closed": reason}).encode("ascii")
                if self._files.create(uri, mark):
                    return None
                continue  # the dispatcher was faster
            if time.monotonic() - said_at >= PRESENCE_SECONDS:
                said_at = time.monotonic()
                self._write_presence()
            time.sleep(POLL_SECONDS)

    def _reason_to_end(self, ends_at: float, timeout: float) -> str | None:
        if not self._is_alive():
            return "ended"
        if self._clock.left() < timeout:
            return "limit"
        return "linger" if time.monotonic() >= ends_at else None

    def _read_head(self, uri: str) -> dict[str, Any] | None:
        """The first line of a batch; None if there is none yet."""
        try:
            head: dict[str, Any] = json.loads(next(text_lines.lines(self._files.chunks(uri))))
        except FileNotFoundError:
            return None
        return head

    def _write_presence(self) -> None:
        content = {"at": now_text(), "batch": self._next, "since": self._since}
        self._files.write(f"{self._folder}batches/presence.json", json.dumps(content).encode("ascii"))
