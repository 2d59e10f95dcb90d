"""What an attempt leaves on the way and at its end: journal, last words, commit (`asya.protocol.job_runs`)."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from asya_spark.clock import now_text
from asya_spark.errors import JobError
from asya_spark.files import Files

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

    def __init__(self, files: Files, folder: str, attempt: str, run_id: str = "") -> None:
        self._files = files
        self.folder = folder
        self.run_id = run_id
        self.attempt = attempt
        self._sequence = 0
        self.parts: list[Part] = []
        self.at_work: int | None = None
        self.stage = "starting"

    def note(self, at_work: int | None, *, stage: str = "working") -> None:
        """Write down who is at work now, and whether user code was called; returns when it is written."""
        self.at_work, self.stage = at_work, stage
        self._sequence += 1
        self._write(
            f"journal-{self._sequence % SLOTS}.json",
            {"sequence": self._sequence, "updated_at": now_text(), "at_work": at_work, "stage": stage},
        )

    def commit(self, error: JobError | None, unreached: int | None = None) -> None:
        """Write the commit: the last file of an attempt, after which nothing may follow.

        Args:
            error: what keeps the job as a whole from working.
            unreached: the first of the members that there was no time for.
        """
        told = None if error is None else asdict(error)
        self._write("commit.json", {"finished_at": now_text(), "error": told, "unreached": unreached})

    def last_words(self, error: JobError) -> None:
        """Write what this process ends with."""
        self._files.write(f"{self.folder}error.json", json.dumps(asdict(error)).encode("ascii"))

    def _write(self, name: str, content: dict[str, Any]) -> None:
        whole = {
            "run_id": self.run_id,
            "attempt": self.attempt,
            **content,
            "parts": [asdict(part) for part in self.parts],
        }
        self._files.write(f"{self.folder}{name}", json.dumps(whole, separators=(",", ":")).encode("ascii"))
