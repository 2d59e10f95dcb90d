"""What one start of a run's driver works with."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from asya_spark.clock import RunClock
from asya_spark.files import Files
from asya_spark.journal import Journal
from asya_spark.manifest import Manifest
from asya_spark.partials import Partials
from asya_spark.results import ResultWriter


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run: what is to be done, and where its traces go."""

    spark: SparkSession
    manifest: Manifest
    files: Files
    journal: Journal
    writer: ResultWriter
    flies: Partials
    clock: RunClock

    @property
    def name(self) -> str:
        """Tells this attempt's Spark jobs from those of any other."""
        return f"{self.manifest.run_id}/{self.journal.attempt}"

    @property
    def scratch(self) -> str:
        """A reference prefix that is this attempt's alone."""
        return f"scratch/{self.manifest.actor}/{self.manifest.number:010d}/{self.journal.attempt}/"
