"""The objects of one attempt: one start of a run's driver."""

from dataclasses import dataclass

from asya_spark.calls.sessions import Sessions
from asya_spark.clock import RunClock
from asya_spark.files import Files
from asya_spark.journal import Journal
from asya_spark.manifest import Manifest
from asya_spark.partials import Partials
from asya_spark.results import Result, ResultWriter


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
