"""Writes the journal, the error and the commit of an attempt (`asya.protocol.job_runs`)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from asya_spark.calls.errors import JobError
from asya_spark.clock import now_text
from asya_spark.files import Files
from asya_spark.secrets import NO_SECRETS, Secrets

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
    """Records the members at work, before they start, and the complete parts.

    It writes two slots in turn, so one stays readable if the process fails during a write. Its errors lose their secrets.
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
            f"journal-{self._sequence % SLOTS}.json",
            {
                "sequence": self._sequence,
                "updated_at": now_text(),
                "at_work": self.at_work,
                "started": started,
                "stage": stage,
            },
        )

    def commit(self, error: JobError | None, unreached: int | None = None, *, python: str = "") -> None:
        """Writes the commit, the last file of an attempt.

        Args:
            error: the error of the whole job, such as a failing import.
            unreached: index of the first member that the run had no time for; all without a result run again.
            python: the version of the running Python.
        """
        content = None if error is None else asdict(self.secrets.redact_error(error))
        self._write(
            "commit.json", {"finished_at": now_text(), "error": content, "unreached": unreached, "python": python}
        )

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
