"""The objects of one attempt, which is one start of a run's driver, and the results that it collects.

Results are written as parts (`asya.protocol.job_runs`).
"""

import json
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from asya.protocol.text import RESULT_LINE_LIMIT
from asya_spark.calls.errors import JobError
from asya_spark.calls.sessions import Sessions
from asya_spark.clock import RunClock
from asya_spark.files import Files, Writer
from asya_spark.journal import Journal, Part, Partials
from asya_spark.manifest import Manifest
from asya_spark.secrets import NO_SECRETS, Secrets

# A part is written at this size, or when its first result has this age; a failed run loses at most that.
PART_BYTES = 4 * 1024 * 1024
PART_SECONDS = 2.0
_IN_MEMORY = 1024 * 1024
_CHUNK = 1024 * 1024


class ResultSealedError(RuntimeError):
    """A job added a frame to a result that has ended."""


class ResultTooLarge(ValueError):  # noqa: N818 - the type of the error, as the protocol has it
    """A frame is larger than the mesh reads."""

    @property
    def error(self) -> JobError:
        """The error that the envelope fails with."""
        return JobError("ResultTooLarge", str(self))


class Result:
    """The frames of one member; large results are buffered on disk.

    Attributes:
        head: the head line, once the result has ended.
        summary: the same as text for the log.
        work: what Spark has measured of the call; None if that is unknown.
    """

    def __init__(self, index: int, secrets: Secrets = NO_SECRETS) -> None:
        self.index = index
        self._secrets = secrets
        self.frames = 0
        self._started_at = time.monotonic()
        self._lines: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()
        self.head = b""
        self.summary = ""
        self.work: dict[str, Any] | None = None

    def add(self, frame: str) -> None:
        """Adds a frame as JSON text.

        Raises:
            ResultSealedError: if the result has ended; an abandoned thread may still add frames.
            ResultTooLarge: if the frame exceeds the limit. Nothing of it is written.
        """
        if len(frame) > RESULT_LINE_LIMIT:
            raise ResultTooLarge(
                f"frame {self.frames} of the result has {len(frame) / 2**20:,.1f} MiB of JSON, and at most "
                f"{RESULT_LINE_LIMIT // 2**20} MiB are read; write the data with asya_spark.data or Spark, and return its reference"
            )
        with self._lock:
            if self.head:
                raise ResultSealedError(f"the result of member {self.index} has ended")
            self._lines.write(frame.encode("ascii") + b"\n")
            self.frames += 1

    def end(
        self,
        end: str,
        *,
        error: JobError | None = None,
        limit: float = 0.0,
        by_deadline: bool = False,
        keep_frames: bool = True,
    ) -> None:
        """Ends the result and writes its head, which precedes the frames in the file; the error loses its secrets."""
        error = error and self._secrets.redact_error(error)
        with self._lock:
            self._seal(end, error, limit, by_deadline=by_deadline, keep_frames=keep_frames)

    def _seal(self, end: str, error: JobError | None, limit: float, *, by_deadline: bool, keep_frames: bool) -> None:
        if not keep_frames:
            self._lines.seek(0)
            self._lines.truncate()
            self.frames = 0
        head = {
            "index": self.index,
            "end": end,
            "frames": self.frames,
            "duration_ms": round((time.monotonic() - self._started_at) * 1000, 3),
            "error": None if error is None else asdict(error),
            "limit": limit,
            "by_deadline": by_deadline,
            **({"work": self.work} if self.work else {}),
        }
        self.summary = f"{end}, {head['duration_ms']} ms, {self.frames} frames" + (
            f": {error.type}: {error.message}" if error else ""
        )
        self.head = json.dumps(head, separators=(",", ":")).encode("ascii") + b"\n"

    def content(self) -> Iterator[bytes]:
        """The content of all lines, in chunks."""
        yield self.head
        self._lines.seek(0)
        while chunk := self._lines.read(_CHUNK):
            yield chunk

    @property
    def size(self) -> int:
        """The size of all lines in bytes."""
        return len(self.head) + self._lines.tell()

    def close(self) -> None:
        """Closes the buffer."""
        self._lines.close()


class ResultWriter:
    """Writes results as parts, each of consecutive members, and lists the parts in the journal.

    Args:
        each_alone: write each result at once, because a process that dies loses those in the buffer.
    """

    def __init__(self, files: Files, folder: str, journal: Journal, *, each_alone: bool = False) -> None:
        self._files = files
        self._folder = folder
        self._journal = journal
        self._each_alone = each_alone
        self._buffer: list[Result] = []
        self._size = 0
        self._since = 0.0
        self.done = 0

    def add(self, result: Result) -> None:
        """Adds a result that has ended; results come in any order."""
        self.done += 1
        if not self._buffer:
            self._since = time.monotonic()
        self._buffer.append(result)
        self._size += result.size
        is_due = self._size >= PART_BYTES or time.monotonic() - self._since >= PART_SECONDS
        if is_due or self._each_alone:
            self.flush()

    def flush(self) -> None:
        """Writes the buffered results as parts; the next journal lists them."""
        if not self._buffer:
            return
        results = sorted(self._buffer, key=lambda result: result.index)
        starts = [
            place for place, result in enumerate(results) if not place or results[place - 1].index + 1 < result.index
        ]
        for start, end in zip(starts, [*starts[1:], len(results)], strict=True):
            self._write(results[start:end])
        self._buffer, self._size = [], 0

    def _write(self, results: Sequence[Result]) -> None:
        """Writes the results of consecutive members as a part."""
        name = f"part-{len(self._journal.parts):06d}.jsonl"
        with self._files.open(f"{self._folder}{name}") as writer:
            size = sum(_copy(result, writer) for result in results)
        lines = sum(1 + result.frames for result in results)
        self._journal.parts.append(Part(name, results[0].index, results[-1].index, lines, size))
        for result in results:
            result.close()


def _copy(result: Result, writer: Writer) -> int:
    size = 0
    for chunk in result.content():
        writer.write(chunk)
        size += len(chunk)
    return size


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run: its manifest and its outputs."""

    sessions: Sessions
    manifest: Manifest
    files: Files
    journal: Journal
    writer: ResultWriter
    partials: Partials
    clock: RunClock

    @property
    def name(self) -> str:
        """The name of this attempt's Spark jobs, unique among all attempts."""
        return f"{self.manifest.run_id}/{self.journal.attempt}"

    @property
    def scratch(self) -> str:
        """A reference prefix for temporary data of this attempt only."""
        return f"scratch/{self.manifest.actor}/{self.manifest.job_run:010d}/{self.journal.attempt}/"

    def result(self, index: int) -> Result:
        """A new result of a member, whose error will have no secrets."""
        return Result(index, self.journal.secrets)
