"""Writes the journal, the partials, the error and the commit of an attempt (`asya.protocol.job_runs`)."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from asya_spark import strict_json
from asya_spark.calls.errors import JobError
from asya_spark.clock import now_text
from asya_spark.files import Files
from asya_spark.secrets import NO_SECRETS, Secrets

# Larger values are data and belong into the payload or into files.
PARTIAL_BYTES = 60 * 1024
BUFFER_LIMIT = 1_000


class Partials:
    """A buffer that any thread adds to and the heartbeat thread writes."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._lock = threading.Lock()
        self._buffer: list[str] = []
        self._sequences: dict[int | None, int] = {}
        self._written = 0
        self._dropped = 0

    def add(self, index: int | None, message: Mapping[str, Any]) -> None:
        """Adds a partial of a member; without an index it is for all members.

        Raises:
            ValueError: if the message is no object or is too large.
            NotJsonError: if JSON cannot hold the message.
        """
        if not isinstance(message, Mapping):
            raise ValueError(f"FLY takes an object, not a {type(message).__name__}")
        data = strict_json.encode(dict(message))
        if len(data) > PARTIAL_BYTES:
            raise ValueError(f"the partial has {len(data)} bytes; {PARTIAL_BYTES} at most")
        with self._lock:
            sequence = self._sequences.get(index, 0)
            self._sequences[index] = sequence + 1
            if len(self._buffer) >= BUFFER_LIMIT:
                self._dropped += 1
                return
            head = json.dumps({"index": index, "sequence": sequence, "at": now_text()})
            self._buffer.append(f'{head[:-1]},"data":{data}}}')

    def write(self) -> None:
        """Writes the buffer as one file; only one thread may call it at a time."""
        with self._lock:
            lines, self._buffer = self._buffer, []
            dropped, self._dropped = self._dropped, 0
        if dropped:
            print(f"asya_spark: {dropped} partials dropped: more than {BUFFER_LIMIT} within a second", flush=True)
        if lines:
            content = "\n".join(lines) + "\n"
            self._files.write(f"{self._folder}fly-{self._written:06d}.jsonl", content.encode("ascii"))
            self._written += 1


COPIES = 2


@dataclass(frozen=True)
class Part:
    """One file of results, of the members `first` to `last`."""

    file: str
    first: int
    last: int
    lines: int
    size: int


class Journal:
    """Records the members at work, before they start, and the complete parts.

    It writes two copies in turn, so one stays readable if the process fails during a write. Its errors lose their secrets.
    """

    def __init__(
        self, files: Files, folder: str, attempt: str, run_id: str = "", secrets: Secrets = NO_SECRETS
    ) -> None:
        self._files = files
        self.folder = folder
        self.run_id = run_id
        self.attempt = attempt
        self.secrets = secrets
        self._sequence = 0
        self.parts: list[Part] = []
        self.at_work: tuple[int, ...] = ()
        self.stage = "starting"

    def record(self, at_work: Sequence[int] = (), *, started: int = 0, stage: str = "working") -> None:
        """Writes the members at work and the stage; returns once the journal is written.

        Args:
            at_work: indexes of members.
            started: the number of members for which user code was called, those at work included.
            stage: `starting` before user code, else `working`.
        """
        self.at_work, self.stage = tuple(at_work), stage
        self._sequence += 1
        self._write(
            f"journal-{self._sequence % COPIES}.json",
            {
                "sequence": self._sequence,
                "updated_at": now_text(),
                "at_work": self.at_work,
                "started": started,
                "stage": stage,
            },
        )

    def commit(
        self,
        error: JobError | None,
        unreached: int | None = None,
        *,
        python: str = "",
        work: dict[str, Any] | None = None,
    ) -> None:
        """Writes the commit, the last file of an attempt.

        Args:
            error: the error of the whole job, such as a failing import.
            unreached: index of the first member that the run had no time for; all without a result run again.
            python: the version of the running Python.
            work: what Spark has measured of a job that has one call for all members.
        """
        content = None if error is None else asdict(self.secrets.redact_error(error))
        ended = {"finished_at": now_text(), "error": content, "unreached": unreached, "python": python}
        self._write("commit.json", ended | ({"work": work} if work else {}))

    def write_error(self, error: JobError) -> None:
        """Writes the error that ends this process."""
        self._files.write(
            f"{self.folder}error.json", json.dumps(asdict(self.secrets.redact_error(error))).encode("ascii")
        )

    def _write(self, name: str, content: dict[str, Any]) -> None:
        document = {
            "run_id": self.run_id,
            "attempt": self.attempt,
            **content,
            "parts": [asdict(part) for part in self.parts],
        }
        self._files.write(f"{self.folder}{name}", json.dumps(document, separators=(",", ":")).encode("ascii"))
