"""Results on their way to files: whole envelopes, gathered into parts (`asya.protocol.job_runs`)."""

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO

from asya_spark.errors import JobError
from asya_spark.files import Files, Writer
from asya_spark.journal import Journal, Part

# A part is written once it has this much, or once its first result is this old: what a run that dies loses.
PART_BYTES = 4 * 1024 * 1024
PART_SECONDS = 2.0
_IN_MEMORY = 1024 * 1024
_CHUNK = 1024 * 1024


class ResultSealedError(RuntimeError):
    """The job goes on giving frames although its time is up."""


class Result:
    """The frames of one member as they come; large ones wait on disk.

    Attributes:
        head: the first line, once it has ended; `said` is the same for people.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.frames = 0
        self._began = time.monotonic()
        self._lines: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()
        self.head = b""
        self.said = ""

    def add(self, frame: str) -> None:
        """One more frame, as JSON text.

        Raises:
            ResultSealedError: if the result has ended; a thread that was left behind may still try.
        """
        with self._lock:
            if self.head:
                raise ResultSealedError(f"the result of member {self.index} has ended")
            self._lines.write(frame.encode("ascii") + b"\n")
            self.frames += 1

    def end(
        self,
        how: str,
        *,
        error: JobError | None = None,
        limit: float = 0.0,
        by_deadline: bool = False,
        keep_frames: bool = True,
    ) -> None:
        """How it went; comes first in the file, so that a reader knows before the first frame."""
        with self._lock:
            self._seal(how, error, limit, by_deadline=by_deadline, keep_frames=keep_frames)

    def _seal(self, how: str, error: JobError | None, limit: float, *, by_deadline: bool, keep_frames: bool) -> None:
        if not keep_frames:
            self._lines.seek(0)
            self._lines.truncate()
            self.frames = 0
        head = {
            "index": self.index,
            "end": how,
            "frames": self.frames,
            "duration_ms": round((time.monotonic() - self._began) * 1000, 3),
            "error": None if error is None else asdict(error),
            "limit": limit,
            "by_deadline": by_deadline,
        }
        self.said = f"{how}, {head['duration_ms']} ms, {self.frames} frames" + (
            f": {error.type}: {error.message}" if error else ""
        )
        self.head = json.dumps(head, separators=(",", ":")).encode("ascii") + b"\n"

    def content(self) -> Iterator[bytes]:
        """The lines, in pieces."""
        yield self.head
        self._lines.seek(0)
        while piece := self._lines.read(_CHUNK):
            yield piece

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return len(self.head) + self._lines.tell()

    def close(self) -> None:
        """Let go of what waits on disk."""
        self._lines.close()


class ResultWriter:
    """Gathers results in the order of the manifest and writes them as parts; each is listed in the journal."""

    def __init__(self, files: Files, folder: str, journal: Journal) -> None:
        self._files = files
        self._folder = folder
        self._journal = journal
        self._waiting: list[Result] = []
        self._size = 0
        self._since = 0.0
        self.done = 0

    def add(self, result: Result) -> None:
        """Take a result that has ended."""
        self.done += 1
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(result)
        self._size += result.size
        if self._size >= PART_BYTES or time.monotonic() - self._since >= PART_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits. The journal tells of it the next time it is written."""
        if not self._waiting:
            return
        name = f"part-{len(self._journal.parts):06d}.jsonl"
        with self._files.open(f"{self._folder}{name}") as writer:
            size = sum(_copy(result, writer) for result in self._waiting)
        lines = sum(1 + result.frames for result in self._waiting)
        part = Part(name, self._waiting[0].index, self._waiting[-1].index, lines, size)
        self._journal.parts.append(part)
        for result in self._waiting:
            result.close()
        self._waiting, self._size = [], 0


def _copy(result: Result, writer: Writer) -> int:
    size = 0
    for piece in result.content():
        writer.write(piece)
        size += len(piece)
    return size
